package apiservice

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// authorityName is the common name of all authorities of Foresail, by which they are known in a caBundle.
	authorityName = "foresail-external-metrics-ca"
	// backdated is how much earlier than now certificates begin, for clocks that differ.
	backdated = time.Hour
	// maxOverlap is the longest time that the API servers are given to learn a new authority.
	maxOverlap = time.Hour
	// maxAuthorities bounds a caBundle. Two are usual; more come of Secrets that were deleted.
	maxAuthorities = 8
)

// authority signs serving certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func newAuthority(now time.Time, validity time.Duration) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(authorityName, now, now.Add(validity))
	if err != nil {
		return nil, err
	}
	template.IsCA, template.MaxPathLenZero = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	signed, err := (&authority{cert: template, key: key}).sign(template, key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate authority: %w", err)
	}
	return &authority{cert: signed, key: key}, nil
}

// sign returns the certificate of a key that a template describes.
func (a *authority) sign(template *x509.Certificate, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func newTemplate(name string, now, end time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true,
		NotBefore: now.Add(-backdated), NotAfter: end,
	}, nil
}

// parseAuthority reads an authority from a Secret. An error says why it is none that can sign now.
func parseAuthority(data map[string][]byte, now time.Time) (*authority, error) {
	certs, err := cert.ParseCertsPEM(data[corev1.TLSCertKey])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", corev1.TLSCertKey, err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", corev1.TLSPrivateKeyKey, err)
	}
	servingCA, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s: a key of type %T: must be one that signs", corev1.TLSPrivateKeyKey, key)
	}
	a := &authority{cert: certs[0], key: servingCA}
	public, ok := servingCA.Public().(interface{ Equal(crypto.PublicKey) bool })
	switch {
	case !ok || !public.Equal(a.cert.PublicKey):
		return nil, errors.New("the certificate and the key do not belong together")
	case !isAuthority(a.cert):
		return nil, fmt.Errorf("%s: the certificate of %q: must be that of the authority %q", corev1.TLSCertKey,
			a.cert.Subject.CommonName, authorityName)
	case now.Before(a.cert.NotBefore):
		return nil, fmt.Errorf("%s: it is valid from %s on", corev1.TLSCertKey, a.cert.NotBefore.Format(time.RFC3339))
	case !now.Before(a.cert.NotAfter):
		return nil, fmt.Errorf("%s: it expired at %s", corev1.TLSCertKey, a.cert.NotAfter.Format(time.RFC3339))
	}
	return a, nil
}

// data returns the data of the Secret that stores an authority.
func (a *authority) data() (map[string][]byte, error) {
	key, err := keyutil.MarshalPrivateKeyToPEM(a.key)
	if err != nil {
		return nil, err
	}
	certs, err := cert.EncodeCertificates(a.cert)
	return map[string][]byte{corev1.TLSCertKey: certs, corev1.TLSPrivateKeyKey: key}, err
}

func (a *authority) validity() time.Duration {
	return a.cert.NotAfter.Sub(a.cert.NotBefore.Add(backdated))
}

// renewal is when another authority must follow.
func (a *authority) renewal() time.Time { return a.cert.NotAfter.Add(-a.validity() / 3) }

// overlap is how long the API servers have to learn this authority before a running replica serves
// its certificates. It is over well before the one that it follows expires.
func (a *authority) overlap() time.Duration { return min(a.validity()/6, maxOverlap) }

// lastCall is when the certificates of this authority have to be replaced at the latest.
func (a *authority) lastCall() time.Time { return a.cert.NotAfter.Add(-a.overlap() / 2) }

// issue returns a serving certificate for host names, in PEM, which is valid for as long as the authority.
func (a *authority) issue(now time.Time, hosts ...string) (certificate, key []byte, err error) {
	servingCA, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template, err := newTemplate(hosts[0], now, a.cert.NotAfter)
	if err != nil {
		return nil, nil, err
	}
	template.DNSNames = hosts
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	signed, err := a.sign(template, servingCA)
	if err != nil {
		return nil, nil, fmt.Errorf("sign a serving certificate: %w", err)
	}
	if certificate, err = cert.EncodeCertificates(signed); err != nil {
		return nil, nil, err
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(servingCA); err != nil {
		return nil, nil, err
	}
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		return nil, nil, fmt.Errorf("sign a serving certificate: %w", err)
	}
	return certificate, key, nil
}

func isAuthority(c *x509.Certificate) bool {
	return c.IsCA && c.Subject.CommonName == authorityName
}

// bundle returns a caBundle with the given authorities, and those of the present one that are to be kept and have not
// expired.
func bundle(now time.Time, present []byte, keep func(*x509.Certificate) bool,
	authorities ...*authority) ([]byte, error) {
	var all []*x509.Certificate
	for _, a := range authorities {
		if a != nil {
			all = append(all, a.cert)
		}
	}
	if found, err := cert.ParseCertsPEM(present); err == nil { // nothing is kept of one that cannot be read
		all = append(all, slices.DeleteFunc(found, func(c *x509.Certificate) bool { return !keep(c) })...)
	}
	all = slices.DeleteFunc(all, func(c *x509.Certificate) bool { return !now.Before(c.NotAfter) })
	slices.SortFunc(all, func(a, b *x509.Certificate) int {
		return cmp.Or(b.NotAfter.Compare(a.NotAfter), bytes.Compare(a.Raw, b.Raw))
	})
	all = slices.CompactFunc(all, (*x509.Certificate).Equal)
	for i := len(all) - 1; i >= 0 && len(all) > maxAuthorities; i-- { // never one that is served
		if !slices.ContainsFunc(authorities, func(a *authority) bool { return a != nil && a.cert.Equal(all[i]) }) {
			all = slices.Delete(all, i, i+1)
		}
	}
	return cert.EncodeCertificates(all...)
}
