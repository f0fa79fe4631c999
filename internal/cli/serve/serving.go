package serve

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	certutil "k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/foresail/foresail/internal/cli"
)

const (
	// noAddress is the value of an address at which nothing is served.
	noAddress = "0"

	metricsAddressFlag = "metrics-address"
	metricsCertFlag    = "metrics-cert-dir"
	certDirFlag        = "cert-dir"
)

// servingOptions are the flags of what a process serves whatever its parts are: probes to anyone,
// metrics and explain to those that the cluster authenticates and authorizes.
type servingOptions struct {
	probeAddress   string
	metricsAddress string
	anonymous      *anonymousOptions
	profiling      bool
	certDir        string // of metricsAddress
}

func (o *servingOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.probeAddress, "http-address", ":8080",
		"Address that serves the probes /livez and /readyz over HTTP, to anyone. 0 serves none.")
	fs.StringVar(&o.metricsAddress, metricsAddressFlag, ":8443",
		"Address that serves /metrics, explain and the dashboard over HTTPS, to clients that the cluster authenticates and authorizes. 0 serves none.")
	fs.StringVar(&o.certDir, metricsCertFlag, "", "Folder with the certificate of --metrics-address, tls.crt, and "+
		"its key, tls.key, read again when they change; empty makes a certificate at start, signed by itself, or "+
		"serves HTTP with --allow-anonymous=metrics.")
	fs.BoolVar(&o.profiling, "profiling", false,
		"Serve CPU and memory profiles below /debug/pprof/ of --metrics-address, to clients with the right to get these paths.")
}

// validate also reads the files that flags name.
func (o *servingOptions) validate() error {
	var errs []error
	for _, a := range []struct{ flag, value, such string }{
		{"http-address", o.probeAddress, ":8080"}, {metricsAddressFlag, o.metricsAddress, ":8443"},
	} {
		if a.value == noAddress {
			continue
		}
		if err := checkAddress(a.value); err != nil {
			errs = append(errs, cli.BadFlag(a.flag, fmt.Sprintf("%q", a.value),
				fmt.Sprintf("a host and a port, such as %s or 127.0.0.1%s, or 0: %v", a.such, a.such, err)))
		}
	}
	if o.profiling && o.metricsAddress == noAddress {
		errs = append(errs, cli.BadFlag("profiling", true, "left out with --metrics-address=0, which serves nothing"))
	}
	return errors.Join(append(errs, checkCertDir(metricsCertFlag, o.certDir))...)
}

// Names of files in a folder of certificates, as in a Secret of type kubernetes.io/tls.
const (
	certName        = "tls.crt"
	keyName         = "tls.key"
	authoritiesName = "ca.crt"
)

// certificateIn returns the files of the certificate and its key in a folder; "" without a folder.
func certificateIn(folder string) (certFile, keyFile string) {
	if folder == "" {
		return "", ""
	}
	return filepath.Join(folder, certName), filepath.Join(folder, keyName)
}

// authoritiesIn returns the file with the authorities of clients in a folder; "" if it has none.
func authoritiesIn(folder string) string {
	if folder == "" {
		return ""
	}
	file := filepath.Join(folder, authoritiesName)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return file
}

// checkCertDir refuses a folder without a certificate and its key. None may be given.
func checkCertDir(flag, folder string) error {
	if folder == "" {
		return nil
	}
	if _, err := tls.LoadX509KeyPair(certificateIn(folder)); err != nil {
		return cli.BadFlag(flag, fmt.Sprintf("%q", folder), fmt.Sprintf("a folder with a certificate and its key "+
			"in PEM, %s and %s: %v", certName, keyName, err))
	}
	return nil
}

// metricsServer returns the options of the server of metrics, to which parts add what explain asks
// for, and what keeps its certificate up to date, nil if nothing has to.
func (o *servingOptions) metricsServer() (metricsserver.Options, ctrlmanager.Runnable, error) {
	options := metricsserver.Options{BindAddress: o.metricsAddress}
	if o.profiling {
		options.ExtraHandlers = map[string]http.Handler{
			"/debug/pprof/": http.HandlerFunc(pprof.Index), "/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
			"/debug/pprof/trace": http.HandlerFunc(pprof.Trace),
		}
	}
	strangers := o.anonymous.allows(anonymousMetrics)
	if !strangers {
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	if o.metricsAddress == noAddress || strangers && o.certDir == "" {
		return options, nil, nil
	}
	certificate, watcher, err := o.certificate()
	if err != nil {
		return options, nil, err
	}
	options.SecureServing = true
	options.TLSOpts = []func(*tls.Config){func(c *tls.Config) {
		c.GetCertificate, c.NextProtos = certificate, []string{"http/1.1"} // a scrape gains nothing by HTTP/2
	}}
	return options, watcher, nil
}

type getCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// certificate returns what answers with the certificate of the files, or with one that is made now.
// The library would otherwise take one that it finds in the folder for temporary files, where
// anyone on the host may have put it.
func (o *servingOptions) certificate() (getCertificate, ctrlmanager.Runnable, error) {
	if o.certDir != "" {
		watcher, err := certwatcher.New(certificateIn(o.certDir))
		if err != nil {
			return nil, nil, fmt.Errorf("--%s: %w", metricsCertFlag, err)
		}
		return watcher.GetCertificate, watcher, nil
	}
	cert, key, err := certutil.GenerateSelfSignedCertKeyWithFixtures("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil,
		"")
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate for --%s: %w", metricsAddressFlag, err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }, nil, err
}

// probeTimeout bounds each step of a probe, which is far shorter.
const probeTimeout = 10 * time.Second

// serveProbes has the manager answer probes from its start on, before it knows the cluster.
func (o *servingOptions) serveProbes(mgr ctrl.Manager, live, ready *probe) error {
	if o.probeAddress == noAddress {
		return nil
	}
	mux := http.NewServeMux()
	mux.Handle("/livez", live)
	mux.Handle("/readyz", ready)
	return mgr.Add(&ctrlmanager.Server{Name: "probes", Server: &http.Server{
		Addr: o.probeAddress, Handler: mux, MaxHeaderBytes: 16 << 10,
		ReadTimeout: probeTimeout, WriteTimeout: probeTimeout, IdleTimeout: time.Minute,
	}})
}

// probe answers a kubelet.
type probe struct {
	before error // the answer as long as there is no check
	with   atomic.Pointer[func() error]
}

func (p *probe) set(check func() error) { p.with.Store(&check) }

func (p *probe) check() error {
	check := p.with.Load()
	if check == nil {
		return p.before
	}
	return (*check)()
}

func (p *probe) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if err := p.check(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// checkAddress refuses what cannot be listened on.
func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("the port %q is not a number from 1 to 65535", port)
	}
	return nil
}
