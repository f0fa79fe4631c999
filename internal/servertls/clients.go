package servertls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bounds of what an error repeats of a certificate.
const (
	maxNames      = 5
	maxNameLength = 100
)

// CheckNames returns why names cannot be those of clients, or nil. Names are compared exactly.
func CheckNames(names []string) error {
	if len(names) == 0 {
		return errors.New("without a name no client is accepted")
	}
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, "* ") {
			return fmt.Errorf("%q is not a name that a certificate has: there are no wildcards", name)
		}
	}
	return nil
}

// verifyNames returns a tls.Config.VerifyConnection that accepts clients with one of the names. An
// authority may sign for many clients: only the name identifies one.
func verifyNames(accepted []string) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		presented := namesOf(state.PeerCertificates[0])
		for _, name := range presented {
			if slices.Contains(accepted, name) {
				return nil
			}
		}
		return fmt.Errorf("the client certificate is for %s: must be for one of %s", list(presented), list(accepted))
	}
}

// namesOf returns the DNS names of a certificate, or its common name if it has none: RFC 6125, section 6.4.4.
func namesOf(certificate *x509.Certificate) []string {
	switch name := certificate.Subject.CommonName; {
	case len(certificate.DNSNames) > 0:
		return certificate.DNSNames
	case name != "":
		return []string{name}
	}
	return nil
}

// list returns names as a phrase of bounded length.
func list(names []string) string {
	if len(names) == 0 {
		return "no DNS name and no common name"
	}
	var quoted []string
	for _, name := range names[:min(len(names), maxNames)] {
		quoted = append(quoted, fmt.Sprintf("%.*q", maxNameLength, name))
	}
	text := strings.Join(quoted, ", ")
	if more := len(names) - maxNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
