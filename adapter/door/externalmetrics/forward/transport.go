package forward

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/rest"
)

// ReadCA reads a file of certificate authorities.
func ReadCA(file string) (*x509.CertPool, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	return pool, nil
}

// newTransport returns a transport that shares nothing with any other. It speaks HTTP/1.1, where a
// request that hangs holds up no other one.
func newTransport(o Options) (http.RoundTripper, error) {
	d := dialer{o: o}
	credentials := &rest.Config{UserAgent: o.Cluster.UserAgent, BearerToken: o.Cluster.BearerToken,
		BearerTokenFile: o.Cluster.BearerTokenFile}
	if own, err := rest.TLSConfigFor(o.Cluster); err != nil {
		return nil, fmt.Errorf("read the credentials of Foresail: %w", err)
	} else if own != nil {
		d.certificate = own.GetClientCertificate
	}
	return rest.HTTPWrappersForConfig(credentials, &http.Transport{
		DialTLSContext: d.dial, DisableCompression: true, MaxResponseHeaderBytes: maxHeaderBytes,
		MaxConnsPerHost: maxInFlight + 1, // the list of metrics is one more
		MaxIdleConns:    maxIdle, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: time.Minute,
	})
}

// maxIdle is how many connections are kept for later.
const maxIdle = 16

// dialer connects to the second adapter. It reads the authorities again for each connection, because they may change.
type dialer struct {
	o           Options
	certificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error) // of Foresail; nil: it has a token
}

// dial may be called with a context that outlives the request.
func (d dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		ServerName: host, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12,
		GetClientCertificate: d.certificate, InsecureSkipVerify: d.o.InsecureSkipTLSVerify,
	}
	if !d.o.InsecureSkipTLSVerify {
		if config.RootCAs, err = ReadCA(d.o.CAFile); err != nil {
			return nil, fmt.Errorf("read the authority of its certificate: %w", err)
		}
	}
	return (&tls.Dialer{Config: config}).DialContext(ctx, network, address)
}
