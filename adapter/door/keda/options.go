package keda

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"github.com/foresail/foresail/internal/localaddr"
	"github.com/foresail/foresail/internal/servertls"
)

// DefaultClientName is the name that the manifests give KEDA's certificate.
const DefaultClientName = "keda-operator"

// Options are where a Server listens and whom it answers.
type Options struct {
	// Address is the host and the port to listen on, such as ":9600".
	Address string
	// CertFile and KeyFile hold the certificate of the server in PEM, and are read again when they
	// change. Without them there is no TLS.
	CertFile, KeyFile string
	// ClientCAFile holds the authorities of KEDA's certificate in PEM, and is read again when it
	// changes. Without it none is requested.
	ClientCAFile string
	// ClientNames are the names that KEDA's certificate may have: a DNS name of it, or its common name if it has no
	// DNS name.
	ClientNames []string
	// AllowAnonymous admits anyone who can reach an address other than loopback.
	AllowAnonymous bool
}

// OptionError reports an invalid option.
type OptionError struct {
	Option string // its name in Options
	Value  string
	Accept string // what would be accepted instead; it may name other options
	Err    error  // why the value is not; may be nil
}

func (e *OptionError) Error() string {
	text := fmt.Sprintf("%s: %q: must be %s", e.Option, e.Value, e.Accept)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *OptionError) Unwrap() error { return e.Err }

// Validate reads the files, and returns all errors joined, each an *OptionError.
func (o Options) Validate() error {
	return errors.Join(o.validateAddress(), o.validateCertificate(), o.validateClients())
}

func (o Options) validateAddress() error {
	_, port, err := net.SplitHostPort(o.Address)
	if err == nil {
		if _, bad := strconv.ParseUint(port, 10, 16); bad != nil {
			err = fmt.Errorf("the port %q is not a number up to 65535", port)
		}
	}
	switch {
	case err != nil:
		return &OptionError{"Address", o.Address, "a host and a port, such as :9600", err}
	case o.AllowAnonymous || o.ClientCAFile != "" || localaddr.Loopback(o.Address):
		return nil
	default:
		return &OptionError{"Address", o.Address,
			"a loopback address, unless KEDA is authenticated (ClientCAFile) or anonymous clients are allowed (AllowAnonymous)",
			errors.New("anybody who can reach it could read the load of every namespace")}
	}
}

func (o Options) validateCertificate() error {
	switch {
	case o.CertFile == "" && o.KeyFile == "":
		return nil
	case o.CertFile == "":
		return &OptionError{"CertFile", "", "given together with KeyFile, or neither", nil}
	case o.KeyFile == "":
		return &OptionError{"KeyFile", "", "given together with CertFile, or neither", nil}
	}
	if _, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile); err != nil {
		return &OptionError{"CertFile", o.CertFile, "a certificate in PEM, the key of which is in KeyFile", err}
	}
	return nil
}

func (o Options) validateClients() error {
	switch {
	case o.ClientCAFile == "":
		return nil
	case o.CertFile == "":
		return &OptionError{"ClientCAFile", o.ClientCAFile,
			"left out unless CertFile is given: without TLS no client has a certificate", nil}
	}
	if err := servertls.CheckAuthorities(o.ClientCAFile); err != nil {
		return &OptionError{"ClientCAFile", o.ClientCAFile, "a file with certificates in PEM", err}
	}
	if err := servertls.CheckNames(o.ClientNames); err != nil {
		const accepted = "the names of KEDA's certificate, such as " + DefaultClientName
		return &OptionError{"ClientNames", strings.Join(o.ClientNames, ","), accepted, err}
	}
	return nil
}

// tlsConfig reads the files; nil means that there is no TLS. The options are valid.
func (o Options) tlsConfig() (*servertls.Config, error) {
	if o.CertFile == "" {
		return nil, nil
	}
	certificate, err := dynamiccertificates.NewDynamicServingContentFromFiles("KEDA scaler", o.CertFile, o.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("serve KEDA: %w", err)
	}
	clients := servertls.Clients{Names: o.ClientNames}
	if o.ClientCAFile != "" {
		if clients.Authorities, err = dynamiccertificates.NewDynamicCAContentFromFile("KEDA",
			o.ClientCAFile); err != nil {
			return nil, fmt.Errorf("serve KEDA: %w", err)
		}
	}
	return servertls.New(certificate, clients, "h2")
}
