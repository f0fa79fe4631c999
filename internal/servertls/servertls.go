// Package servertls has the TLS of servers whose certificates change while they serve.
package servertls

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// Config is the TLS of a server. Handshakes use what was read last.
type Config struct {
	*tls.Config
	controller *dynamiccertificates.DynamicServingCertificateController
	files      []dynamiccertificates.ControllerRunner
}

// Clients describes the clients that a server accepts: each needs a certificate of one of the
// authorities, with one of the names.
type Clients struct {
	Authorities dynamiccertificates.CAContentProvider // nil: no certificate is required
	Names       []string                              // not read without Authorities
}

// New returns the TLS of a server with a certificate. Certificate and authorities are read at once.
// Protocols are those of ALPN.
func New(
	certificate dynamiccertificates.CertKeyContentProvider, clients Clients, protocols ...string,
) (*Config, error) {
	base := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols}
	if clients.Authorities != nil {
		base.ClientAuth, base.VerifyConnection = tls.RequireAndVerifyClientCert, verifyNames(clients.Names)
	}
	c := &Config{controller: dynamiccertificates.NewDynamicServingCertificateController(
		base, clients.Authorities, certificate, nil, nil,
	)}
	if err := c.controller.RunOnce(); err != nil {
		return nil, err
	}
	for _, p := range []any{certificate, clients.Authorities} {
		if n, ok := p.(dynamiccertificates.Notifier); ok {
			n.AddListener(c.controller)
		}
		if f, ok := p.(dynamiccertificates.ControllerRunner); ok {
			c.files = append(c.files, f)
		}
	}
	c.Config = base.Clone()
	c.GetConfigForClient = c.controller.GetConfigForClient
	return c, nil
}

// CheckAuthorities returns why a file does not hold certificates of authorities in PEM, or nil.
func CheckAuthorities(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(content) {
		return errors.New("there is none in it")
	}
	return nil
}

// Run reads files again when they change, until the context ends.
func (c *Config) Run(ctx context.Context) error {
	var parts errgroup.Group
	for _, f := range c.files {
		parts.Go(func() error { f.Run(ctx, 1); return nil })
	}
	parts.Go(func() error { c.controller.Run(1, ctx.Done()); return nil })
	return parts.Wait()
}
