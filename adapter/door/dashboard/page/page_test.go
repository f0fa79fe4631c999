package page

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711}

// replica answers with the paths that it is requested.
func replica(asked *[]string) Fetch {
	return func(_ context.Context, path string) (Answer, error) {
		*asked = append(*asked, path)
		return Answer{Code: http.StatusOK, Type: "application/json", Body: []byte(`{"items":[]}`)}, nil
	}
}

// local answers with what it is requested.
var local = Local{
	Cluster: Cluster{Name: "prod", Server: "https://10.0.0.1"},
	Metric:  func(_ context.Context, metric types.NamespacedName) any { return "local metric " + metric.String() },
	Pools:   func(context.Context) any { return "local pools" },
	Pool:    func(_ context.Context, name string) any { return "local pool " + name },
	WhatIf: func(_ context.Context, metric types.NamespacedName, values url.Values) any {
		return metric.String() + " " + values.Encode()
	},
	Pods: func(context.Context) any { return "local pods" },
	Pod:  func(_ context.Context, pod types.NamespacedName) any { return "local pod " + pod.String() },
	Events: func(_ context.Context, kind string, object types.NamespacedName) any {
		return kind + " " + object.String()
	},
}

// opened is a page and the cookie of who has opened its URL.
func opened(t *testing.T, fetch Fetch) (*Page, *http.Cookie) {
	t.Helper()
	p, err := New(loopback, "/dashboard/", fetch, local)
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodGet, p.URL(), nil)
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code)
	require.Len(t, w.Result().Cookies(), 1)
	return p, w.Result().Cookies()[0]
}

type request struct {
	method, host, path, site string
	cookie                   *http.Cookie
}

func (q request) to(p *Page) *httptest.ResponseRecorder {
	if q.method == "" {
		q.method = http.MethodGet
	}
	if q.host == "" {
		q.host = "127.0.0.1:4711"
	}
	r := httptest.NewRequest(q.method, "http://"+q.host+q.path, nil)
	if q.cookie != nil {
		r.AddCookie(q.cookie)
	}
	if q.site != "" {
		r.Header.Set("Sec-Fetch-Site", q.site)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

func TestTheTokenOpensThePage(t *testing.T) {
	var asked []string
	p, cookie := opened(t, replica(&asked))
	assert.True(t, cookie.HttpOnly)
	assert.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	assert.Equal(t, "foresail-dashboard-4711", cookie.Name)
	address, err := url.Parse(p.URL())
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(address.Query().Get("token")), 26, "130 bits in base32")
	other, err := New(loopback, "/dashboard/", replica(&asked), local)
	require.NoError(t, err)
	assert.NotEqual(t, p.URL(), other.URL())

	for name, c := range map[string]struct {
		request
		code int
	}{
		"the page":              {request{path: "/", cookie: cookie}, http.StatusOK},
		"by the name localhost": {request{path: "/", host: "localhost:4711", cookie: cookie}, http.StatusOK},
		"a file":                {request{path: "/app.js", cookie: cookie, site: "same-origin"}, http.StatusOK},
		"data": {request{path: "/dashboard/v1/metrics", cookie: cookie, site: "same-origin"},
			http.StatusOK},
		"typed":                       {request{path: "/", cookie: cookie, site: "none"}, http.StatusOK},
		"from a link of another site": {request{path: "/?" + address.RawQuery, site: "cross-site"}, http.StatusOK},
		"what is local": {request{path: "/local/v1/workerpools", cookie: cookie, site: "same-origin"},
			http.StatusOK},
		"local without a cookie": {request{path: "/local/v1/workerpools"}, http.StatusForbidden},
		"local from another port": {request{path: "/local/v1/workerpools", cookie: cookie, site: "same-site"},
			http.StatusForbidden},
		"a local change": {request{method: http.MethodPost, path: "/local/v1/workerpools", cookie: cookie},
			http.StatusMethodNotAllowed},
		"a path that leaves what is local": {request{path: "/local/../dashboard/v1/metrics", cookie: cookie},
			http.StatusNotFound},
		"without a cookie":        {request{path: "/"}, http.StatusForbidden},
		"data without a cookie":   {request{path: "/dashboard/v1/metrics"}, http.StatusForbidden},
		"a file without a cookie": {request{path: "/app.js"}, http.StatusForbidden},
		"a wrong token":           {request{path: "/?token=ABCDEFGHIJKLMNOPQRSTUVWXYZ"}, http.StatusForbidden},
		"an empty token":          {request{path: "/?token="}, http.StatusForbidden},
		"a token where there is no page": {request{path: "/dashboard/v1/metrics?" + address.RawQuery},
			http.StatusForbidden},
		"the cookie of another run": {request{path: "/", cookie: &http.Cookie{Name: cookie.Name, Value: other.token}},
			http.StatusForbidden},
		"from another port": {request{path: "/dashboard/v1/metrics", cookie: cookie, site: "same-site"},
			http.StatusForbidden},
		"from another site": {request{path: "/dashboard/v1/metrics", cookie: cookie, site: "cross-site"},
			http.StatusForbidden},
		"a domain that was rebound": {request{path: "/", host: "attacker.example:4711", cookie: cookie},
			http.StatusMisdirectedRequest},
		"a domain with the token": {request{path: "/?" + address.RawQuery, host: "attacker.example:4711"},
			http.StatusMisdirectedRequest},
		"another port": {request{path: "/", host: "127.0.0.1:80", cookie: cookie},
			http.StatusMisdirectedRequest},
		"a change": {request{method: http.MethodPost, path: "/dashboard/v1/metrics", cookie: cookie},
			http.StatusMethodNotAllowed},
		"a path that leaves that of data": {request{path: "/dashboard/../metrics", cookie: cookie},
			http.StatusNotFound},
		"a file that there is not": {request{path: "/metrics", cookie: cookie}, http.StatusNotFound},
	} {
		w := c.to(p)
		assert.Equal(t, c.code, w.Code, name)
		assert.Equal(t, name == "what is local", strings.HasPrefix(w.Body.String(), `"local `), name)
		assert.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'", name)
		assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"), name)
		assert.Equal(t, "no-referrer", w.Header().Get("Referrer-Policy"), name)
		assert.Equal(t, c.code == http.StatusOK && strings.Contains(c.path, "token="), len(w.Result().Cookies()) == 1,
			name)
	}
	assert.Equal(t, []string{"/dashboard/v1/metrics"}, asked, "no one else has the replica asked")
}

func TestAnswersOfTheReplicaAreHandedOn(t *testing.T) {
	answer, failure := Answer{}, error(nil)
	var asked string
	p, cookie := opened(t, func(_ context.Context, path string) (Answer, error) {
		asked = path
		return answer, failure
	})
	for _, c := range []struct {
		answer  Answer
		failure error
		code    int
		kind    string
		body    string
	}{
		{Answer{http.StatusOK, "application/json", []byte(`{}`)}, nil, http.StatusOK, "application/json", "{}"},
		{Answer{http.StatusBadRequest, "text/plain", []byte("limit: must be")}, nil, http.StatusBadRequest,
			"text/plain; charset=utf-8", "limit: must be"},
		{Answer{http.StatusOK, "text/html", []byte("<script>")}, nil, http.StatusOK, "text/plain; charset=utf-8",
			"<script>"},
		{Answer{}, errors.New("no replica answers"), http.StatusBadGateway,
			"text/plain; charset=utf-8", "no replica answers\n"},
	} {
		answer, failure = c.answer, c.failure
		w := request{path: "/dashboard/v1/metrics?search=a%2Fb&limit=50", cookie: cookie}.to(p)
		assert.Equal(t, c.code, w.Code)
		assert.Equal(t, c.kind, w.Header().Get("Content-Type"))
		assert.Equal(t, c.body, w.Body.String())
		assert.Equal(t, "/dashboard/v1/metrics?limit=50&search=a%2Fb", asked)
	}
}

func TestWhatIsLocalIsAnsweredAsJSON(t *testing.T) {
	p, cookie := opened(t, nil)
	for path, want := range map[string]string{
		"/local/v1/cluster":                            `{"name":"prod","server":"https://10.0.0.1"}`,
		"/local/v1/predictedmetrics/shop/a%20b":        `"local metric shop/a b"`,
		"/local/v1/workerpools":                        `"local pools"`,
		"/local/v1/workerpools/a%20b":                  `"local pool a b"`,
		"/local/v1/whatif/shop/checkout?lateness=1%25": `"shop/checkout lateness=1%25"`,
		"/local/v1/pods":                               `"local pods"`,
		"/local/v1/pods/shop/a%20b":                    `"local pod shop/a b"`,
		"/local/v1/events/predictedmetrics/shop/a%20b": `"PredictedMetric shop/a b"`,
		"/local/v1/events/workerpools/workers":         `"WorkerPool /workers"`,
	} {
		w := request{path: path, cookie: cookie}.to(p)
		assert.Equal(t, http.StatusOK, w.Code, path)
		assert.Equal(t, "application/json", w.Header().Get("Content-Type"), path)
		assert.Equal(t, want, w.Body.String(), path)
	}
	for _, path := range []string{"/local/v1/nodes", "/local/v1/pods/shop", "/local/v1/pods/shop/a/b"} {
		assert.Equal(t, http.StatusNotFound, request{path: path, cookie: cookie}.to(p).Code, path)
	}
}

var (
	address = regexp.MustCompile(`(?i)(?:https?:)?//[a-z0-9.-]+\.[a-z]+[^\s"']*`)
	inline  = regexp.MustCompile(
		`(?i)<script[^>]*>[^<]|<style|\sstyle=|\son[a-z]+=|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(`)
)

// The page asks no other server for anything, and has nothing that its policy forbids, or that makes markup of texts.
func TestFilesAreOfThisServerAlone(t *testing.T) {
	total := 0
	require.NoError(t, fs.WalkDir(static, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := static.ReadFile(path)
		total += len(content)
		for _, found := range address.FindAllString(string(content), -1) {
			assert.Equal(t, "http://www.w3.org/2000/svg", found, path) // the name of a namespace
		}
		assert.Empty(t, inline.FindAllString(string(content), -1), path)
		return err
	}))
	assert.NotZero(t, total)
	assert.Less(t, total, 84<<10)
}
