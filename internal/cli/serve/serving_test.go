package serve

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certutil "k8s.io/client-go/util/cert"
)

// Metrics are served to clients with rights over HTTPS, unless the operator says otherwise.
func TestMetricsAreServedToThoseWithRights(t *testing.T) {
	files := []string{"--metrics-cert-dir=" + certDir(t, "foresail.example")}[:1:1]
	for name, test := range map[string]struct {
		args               []string
		authorized, secure bool
		host               string // of the certificate
	}{
		"by default":                  {nil, true, true, "localhost"},
		"with a certificate":          {files, true, true, "foresail.example"},
		"anonymous":                   {[]string{"--allow-anonymous=metrics"}, false, false, ""},
		"anonymous, by a certificate": {append(files, "--allow-anonymous=metrics"), false, true, "foresail.example"},
		"not at all":                  {[]string{"--metrics-address=0"}, true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := parsedRun(t, append([]string{"--leader-elect=false", "--apiservice=none"}, test.args...)...)
			require.NoError(t, o.validate())
			server, _, err := o.serving.metricsServer()
			require.NoError(t, err)
			assert.Equal(t, test.authorized, server.FilterProvider != nil)
			assert.Equal(t, test.secure, server.SecureServing)
			if !test.secure {
				return
			}
			var config tls.Config
			server.TLSOpts[0](&config)
			pair, err := config.GetCertificate(nil)
			require.NoError(t, err)
			leaf, err := x509.ParseCertificate(pair.Certificate[0])
			require.NoError(t, err)
			assert.NoError(t, leaf.VerifyHostname(test.host))
		})
	}
}

// Profiles are served on request alone, behind the same check of who asks.
func TestProfilesAreServedOnRequest(t *testing.T) {
	server, _, err := parsedRun(t).serving.metricsServer()
	require.NoError(t, err)
	assert.Empty(t, server.ExtraHandlers)

	server, _, err = parsedRun(t, "--profiling").serving.metricsServer()
	require.NoError(t, err)
	assert.NotNil(t, server.FilterProvider)
	w := httptest.NewRecorder()
	server.ExtraHandlers["/debug/pprof/"].ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/pprof/heap", nil))
	assert.Equal(t, http.StatusOK, w.Code)
	assert.NotEmpty(t, w.Body.Bytes())

	o := parsedRun(t, "--leader-elect=false", "--apiservice=none", "--profiling", "--metrics-address=0")
	assert.ErrorContains(t, o.validate(), "--profiling")
}

// The library looks for a certificate in the folder for temporary files, where others may write.
func TestMetricsHaveNoCertificateOfOthers(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	folder := filepath.Join(os.TempDir(), "k8s-metrics-server", "serving-certs")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	cert, key, err := certutil.GenerateSelfSignedCertKey("stranger.example", nil, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "tls.crt"), cert, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600))
	server, _, err := parsedRun(t).serving.metricsServer()
	require.NoError(t, err)
	var config tls.Config
	server.TLSOpts[0](&config)
	require.NotNil(t, config.GetCertificate, "with it the library looks for none")
	pair, err := config.GetCertificate(nil)
	require.NoError(t, err)
	assert.NotContains(t, string(cert),
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
}

func TestProbes(t *testing.T) {
	live, ready := &probe{}, &probe{before: errors.New("starting")}
	answer := func(p *probe) (int, string) {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		return w.Code, w.Body.String()
	}
	code, _ := answer(live)
	assert.Equal(t, http.StatusOK, code, "a restart does not help against a start")
	code, text := answer(ready)
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, text, "starting")

	var hangs error
	parts := []*part{{}, {alive: func() error { return hangs }}}
	live.set(func() error { return join(parts, (*part).liveness) })
	code, _ = answer(live)
	assert.Equal(t, http.StatusOK, code)
	hangs = errors.New("the forecaster hangs")
	code, text = answer(live)
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, text, "the forecaster hangs")
}
