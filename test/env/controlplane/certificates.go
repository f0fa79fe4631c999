package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificateLife is how long a cluster's certificates are valid. They begin an hour early, for
// clocks that differ.
const certificateLife = 365 * 24 * time.Hour

// KeyPair is a certificate and its private key, in PEM.
type KeyPair struct {
	Cert, Key []byte
}

// write stores the pair as <name>.crt and <name>.key in a folder and returns the paths.
func (p KeyPair) write(dir, name string) (certFile, keyFile string, err error) {
	certFile, keyFile = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	if err := os.WriteFile(certFile, p.Cert, 0o644); err != nil {
		return "", "", err
	}
	return certFile, keyFile, os.WriteFile(keyFile, p.Key, 0o600)
}

// Authority is a certificate authority, as each cluster has.
type Authority struct {
	KeyPair
	parsed *x509.Certificate
	signer crypto.Signer
}

// NewAuthority makes an authority that signs its own certificate.
func NewAuthority(name string) (*Authority, error) {
	template, err := certificateTemplate(name)
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	signer, keyPEM, err := newKey()
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("certificate of authority %q: %w", name, err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificate of authority %q: %w", name, err)
	}
	return &Authority{KeyPair: KeyPair{Cert: encodeCertificate(der), Key: keyPEM}, parsed: parsed, signer: signer}, nil
}

// readAuthority reads the authority that [KeyPair.write] has stored.
func readAuthority(dir, name string) (*Authority, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
	if err != nil {
		return nil, err
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s.key: %T: want a key that signs", name, pair.PrivateKey)
	}
	return &Authority{KeyPair: KeyPair{Cert: encodeCertificate(pair.Certificate[0])}, parsed: pair.Leaf,
		signer: signer}, nil
}

// Client issues a certificate by which a server that trusts the authority knows user and groups.
func (a *Authority) Client(user string, groups ...string) (KeyPair, error) {
	template, err := certificateTemplate(user)
	if err != nil {
		return KeyPair{}, err
	}
	template.Subject.Organization = groups
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

// Server issues a certificate for host names and IP addresses.
func (a *Authority) Server(hosts ...string) (KeyPair, error) {
	template, err := certificateTemplate(hosts[0])
	if err != nil {
		return KeyPair{}, err
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return a.issue(template)
}

func (a *Authority) issue(template *x509.Certificate) (KeyPair, error) {
	signer, keyPEM, err := newKey()
	if err != nil {
		return KeyPair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.parsed, signer.Public(), a.signer)
	if err != nil {
		return KeyPair{}, fmt.Errorf("certificate of %q: %w", template.Subject.CommonName, err)
	}
	return KeyPair{Cert: encodeCertificate(der), Key: keyPEM}, nil
}

func certificateTemplate(name string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(certificateLife),
		BasicConstraintsValid: true,
	}, nil
}

// newKey makes an ECDSA key, as RSA keys would take a noticeable part of the start, in the one
// encoding that Kubernetes also takes for the key of service accounts.
func newKey() (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
