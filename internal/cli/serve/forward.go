package serve

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/foresail/foresail/adapter/door/externalmetrics/forward"
	"github.com/foresail/foresail/internal/cli"
)

const (
	forwardURLFlag      = "forward-url"
	forwardCAFlag       = "forward-ca-file"
	forwardInsecureFlag = "forward-insecure-skip-tls-verify"

	acceptForwardURL = "https, a host and perhaps a port, such as https://datadog-cluster-agent-metrics-api.datadog.svc:8443"
)

// forwardOptions are the flags of the second adapter, which has the external metrics that are not Foresail's.
type forwardOptions struct {
	url      string
	caFile   string
	insecure bool
}

func (o *forwardOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.url, forwardURLFlag, "",
		"URL of a second adapter, such as https://NAME.NAMESPACE.svc:443, that answers reads of external metrics that are not Foresail's; empty is none. It must authorize Foresail's ServiceAccount to get and list them.")
	fs.StringVar(&o.caFile, forwardCAFlag, "",
		"File with the certificate authority, in PEM, of the second adapter's certificate. It is read again when it changes.")
	fs.BoolVar(&o.insecure, forwardInsecureFlag, false,
		"Accept any certificate of the second adapter. Any server at its address then receives the token of Foresail's ServiceAccount.")
}

// validate also reads the file of authorities. service is where Foresail itself can be reached.
func (o *forwardOptions) validate(service string) error {
	if o.url == "" {
		return o.validateNone()
	}
	var errs []error
	if host, err := forwardHost(o.url); err != nil {
		errs = append(errs, err)
	} else if name, _, _ := net.SplitHostPort(host); name == service || strings.HasPrefix(name, service+".") {
		errs = append(errs, cli.BadFlag(forwardURLFlag, fmt.Sprintf("%q", o.url),
			"another server than Foresail itself"))
	}
	return errors.Join(append(errs, o.validateCA())...)
}

func (o *forwardOptions) validateNone() error {
	var errs []error
	if o.caFile != "" {
		errs = append(errs, cli.BadFlag(forwardCAFlag, fmt.Sprintf("%q", o.caFile),
			"left out without --"+forwardURLFlag))
	}
	if o.insecure {
		errs = append(errs, cli.BadFlag(forwardInsecureFlag, true, "left out without --"+forwardURLFlag))
	}
	return errors.Join(errs...)
}

func (o *forwardOptions) validateCA() error {
	switch {
	case o.insecure && o.caFile != "":
		return cli.BadFlag(forwardInsecureFlag, true, "left out with --"+forwardCAFlag)
	case o.insecure:
		return nil
	case o.caFile == "":
		return cli.BadFlag(forwardCAFlag, `""`, "a file in PEM, or left out with --"+forwardInsecureFlag)
	}
	if _, err := forward.ReadCA(o.caFile); err != nil {
		return cli.BadFlag(forwardCAFlag, fmt.Sprintf("%q", o.caFile),
			fmt.Sprintf("a file with certificates in PEM: %v", err))
	}
	return nil
}

// forwardHost returns the host and port of a URL that has nothing else.
func forwardHost(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", cli.BadFlag(forwardURLFlag, "(not shown, as it may hold a password)", acceptForwardURL)
	}
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = "443"
	}
	bare := url.URL{Scheme: u.Scheme, Host: u.Host}
	switch {
	case u.Scheme != "https", u.String() != bare.String() && u.String() != bare.String()+"/",
		len(validation.IsDNS1123Subdomain(host)) > 0 && net.ParseIP(host) == nil, !isPort(port):
		return "", cli.BadFlag(forwardURLFlag, fmt.Sprintf("%q", u.Redacted()), acceptForwardURL)
	}
	return net.JoinHostPort(host, port), nil
}

// isPort reports whether a port may be connected to.
func isPort(port string) bool {
	var number int
	_, err := fmt.Sscanf(port, "%d", &number)
	return err == nil && len(validation.IsValidPortNum(number)) == 0
}

// forwarder returns what forwards to the second adapter, nil without one.
func (o *forwardOptions) forwarder(cluster *rest.Config) (*forward.Forwarder, error) {
	if o.url == "" {
		return nil, nil
	}
	host, err := forwardHost(o.url)
	if err != nil {
		return nil, err
	}
	return forward.New(forward.Options{
		Host: host, CAFile: o.caFile, InsecureSkipTLSVerify: o.insecure, Cluster: cluster, Registerer: metrics.Registry,
		Now: time.Now,
	})
}
