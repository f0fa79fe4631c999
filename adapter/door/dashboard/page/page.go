// Package page serves the pages of `foresail dashboard`: files that are part of the
// program, the answers of a replica of Foresail, and those of the command itself. It serves one
// user on one machine, at a loopback address.
//
// Other users of the machine and web pages in the user's browser reach that address too. A request
// is answered only if its Host is that of the server, so that no domain can be rebound to it, and
// with the token that only the user was shown: in the URL at first, in a cookie from then on.
// Nothing that is served changes anything, or refers to another server.
package page

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

//go:embed static
var static embed.FS

// Answer is the response of a replica.
type Answer struct {
	Code int
	Type string
	Body []byte
}

// Fetch gets a path with its query from a replica. An error is one of the connection: its text is shown.
type Fetch func(ctx context.Context, path string) (Answer, error)

// Page is an http.Handler.
type Page struct {
	hosts  []string // that the server is called by
	token  string
	cookie string
	data   string // the prefix of the paths that are fetched
	fetch  Fetch
	local  http.Handler
	files  http.Handler
}

// localPath is the prefix of the paths that are answered on this machine.
const localPath = "/local/"

// Local answers requests on this machine. Answers become JSON; a problem that the page is to show is part of them.
type Local struct {
	Pools func(ctx context.Context) any
	Pool  func(ctx context.Context, name string) any
	// Cluster names the cluster that the page is about.
	Cluster Cluster
	// Metric returns the metric, source and bounds of a PredictedMetric.
	Metric func(ctx context.Context, metric types.NamespacedName) any
	// WhatIf plays the recorded hour of a PredictedMetric with other values; without any it says what they are.
	WhatIf func(ctx context.Context, metric types.NamespacedName, values url.Values) any
	// Events are those about an object of a kind of Foresail, with a namespace if the kind has one.
	Events func(ctx context.Context, kind string, object types.NamespacedName) any
	Pods   func(ctx context.Context) any
	Pod    func(ctx context.Context, pod types.NamespacedName) any
}

// Cluster names a cluster as a kubeconfig does. What is not known is "".
type Cluster struct {
	Name   string `json:"name"`   // the context
	Server string `json:"server"` // of the API, or the replica that is asked
}

func (l *Local) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+localPath+"v1/cluster", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(context.Context) any { return l.Cluster })
	})
	mux.HandleFunc("GET "+localPath+"v1/predictedmetrics/{namespace}/{name}",
		func(w http.ResponseWriter, r *http.Request) {
			answer(w, r, func(ctx context.Context) any { return l.Metric(ctx, object(r)) })
		})
	mux.HandleFunc("GET "+localPath+"v1/workerpools", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(ctx context.Context) any { return l.Pools(ctx) })
	})
	mux.HandleFunc("GET "+localPath+"v1/workerpools/{name}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(ctx context.Context) any { return l.Pool(ctx, r.PathValue("name")) })
	})
	mux.HandleFunc("GET "+localPath+"v1/whatif/{namespace}/{name}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(ctx context.Context) any { return l.WhatIf(ctx, object(r), r.URL.Query()) })
	})
	for of, kind := range map[string]string{"predictedmetrics/{namespace}/{name}": "PredictedMetric",
		"workerpools/{name}": "WorkerPool"} {
		mux.HandleFunc("GET "+localPath+"v1/events/"+of, func(w http.ResponseWriter, r *http.Request) {
			answer(w, r, func(ctx context.Context) any { return l.Events(ctx, kind, object(r)) })
		})
	}
	mux.HandleFunc("GET "+localPath+"v1/pods", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(ctx context.Context) any { return l.Pods(ctx) })
	})
	mux.HandleFunc("GET "+localPath+"v1/pods/{namespace}/{name}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(ctx context.Context) any { return l.Pod(ctx, object(r)) })
	})
	return mux
}

// object returns the object that the path names.
func object(r *http.Request) types.NamespacedName {
	return types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
}

// localTimeout bounds what the browser waits for, a little less than the server does.
const localTimeout = 25 * time.Second

func answer(w http.ResponseWriter, r *http.Request, of func(context.Context) any) {
	ctx, cancel := context.WithTimeout(r.Context(), localTimeout)
	defer cancel()
	content, err := json.Marshal(of(ctx))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(content) // the browser may be gone
}

// tokenParameter is the parameter of the URL that has the token.
const tokenParameter = "token"

// New returns the page of a server at an address, with a token of its own. It fetches what is below
// the path data, and nothing else. What is below localPath is answered by local.
func New(address net.Addr, data string, fetch Fetch, local Local) (*Page, error) {
	_, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return nil, err
	}
	files, err := fs.Sub(static, "static")
	if err != nil {
		return nil, err
	}
	return &Page{
		hosts:  []string{"127.0.0.1:" + port, "localhost:" + port},
		token:  rand.Text(),
		cookie: "foresail-dashboard-" + port, // cookies of one host are shared by all ports
		data:   data, fetch: fetch, local: local.handler(), files: http.FileServerFS(files),
	}, nil
}

// URL returns the address that the user opens.
func (p *Page) URL() string {
	return "http://" + p.hosts[0] + "/?" + tokenParameter + "=" + p.token
}

// policy allows only the files of the page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
	} {
		w.Header().Set(name, value)
	}
	switch given := r.URL.Query().Get(tokenParameter); {
	case !slices.Contains(p.hosts, r.Host):
		http.Error(w, "The dashboard is at "+p.hosts[0]+" only.", http.StatusMisdirectedRequest)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "The dashboard changes nothing.", http.StatusMethodNotAllowed)
	case r.URL.Path == "/" && p.is(given):
		// Without a redirect, which browsers would follow without the cookie if another site had the
		// link. The page drops the token from the address.
		http.SetCookie(w, &http.Cookie{Name: p.cookie, Value: p.token, Path: "/", HttpOnly: true,
			SameSite: http.SameSiteStrictMode})
		p.files.ServeHTTP(w, r)
	case !p.knows(r):
		http.Error(w, "Open the whole URL that foresail dashboard printed: its token is missing here, or of another run.",
			http.StatusForbidden)
	case path.Clean(r.URL.Path) != r.URL.Path:
		http.NotFound(w, r)
	case strings.HasPrefix(r.URL.Path, p.data):
		p.serveData(w, r)
	case strings.HasPrefix(r.URL.Path, localPath):
		p.local.ServeHTTP(w, r)
	default:
		p.files.ServeHTTP(w, r)
	}
}

// knows reports whether the request has the token. A page of another port may make the browser send the
// cookie, which the browser then declares.
func (p *Page) knows(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		return false
	}
	cookie, err := r.Cookie(p.cookie)
	return err == nil && p.is(cookie.Value)
}

func (p *Page) is(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(p.token)) == 1
}

// fetchTimeout bounds what the browser waits for.
const fetchTimeout = 15 * time.Second

func (p *Page) serveData(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), fetchTimeout)
	defer cancel()
	target := url.URL{Path: r.URL.Path, RawQuery: r.URL.Query().Encode()}
	answer, err := p.fetch(ctx, target.RequestURI())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	if !strings.HasPrefix(answer.Type, "application/json") {
		answer.Type = "text/plain; charset=utf-8"
	}
	w.Header().Set("Content-Type", answer.Type)
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body) // the browser may be gone
}
