package apiservice

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// certificates serves certificates of the authorities that the Secret has, one after the other.
type certificates struct {
	secret     *authoritySecret // nil: another program makes the certificates
	host       string
	expiration prometheus.Gauge
	serving    serving

	shared    *authority                 // of the Secret, as it was last; nil: not read yet
	servingCA *authority                 // of the certificate that is served; nil: no client trusts it
	seen      map[[sha256.Size]byte]bool // certificates of the authorities that the Secret has had, by their digests
	known     time.Time                  // when shared was first known to be in the caBundle; zero: not yet
	began     time.Time
}

// newCertificates returns some that serve a certificate that no client trusts, if they serve one at all.
func newCertificates(o *Options, metrics *telemetry) (*certificates, error) {
	c := &certificates{host: o.Service.Host(), expiration: metrics.expiration,
		seen: map[[sha256.Size]byte]bool{}, began: o.Now()}
	if o.Secret == "" {
		return c, nil
	}
	c.secret = &authoritySecret{o.Client, client.ObjectKey{Namespace: o.Service.Namespace, Name: o.Secret}, o.Validity}
	untrusted, err := newAuthority(c.began, o.Validity)
	if err != nil {
		return nil, err
	}
	return c, c.serve(c.began, untrusted)
}

// read reads the authority that the replicas share, which may be another one by now. After an error the last one stays.
func (c *certificates) read(ctx context.Context, now time.Time) error {
	if c.secret == nil {
		return nil
	}
	return race(func() error {
		found, err := c.secret.readOrRenew(ctx, now)
		if found != nil && (c.shared == nil || !c.shared.cert.Equal(found.cert)) {
			c.shared, c.known = found, time.Time{}
			c.seen[sha256.Sum256(found.cert.Raw)] = true
		}
		return err
	})
}

// serve replaces the serving certificate.
func (c *certificates) serve(now time.Time, by *authority) error {
	cert, key, err := by.issue(now, c.host)
	if err != nil {
		return err
	}
	c.serving.set(cert, key)
	c.expiration.Set(float64(by.cert.NotAfter.Unix()))
	return nil
}

// renew serves a certificate of the shared authority once the API servers had time to learn it, if they are to: trusted
// reports that its caBundle is Foresail's to write. It returns when there is something to do again.
func (c *certificates) renew(now time.Time, trusted bool) (time.Time, error) {
	again := c.shared.renewal()
	if c.servingCA == c.shared {
		return again, nil
	}
	if c.known.IsZero() {
		c.known = now
	}
	if trusted && c.servingCA != nil {
		if at := c.successionAt(); now.Before(at) {
			return earlier(at, again), nil
		}
	}
	if err := c.serve(now, c.shared); err != nil {
		return again, err
	}
	c.servingCA = c.shared
	return again, nil
}

// successionAt is when the certificate of the shared authority replaces the present one, which has
// to have been long enough in the caBundle, but not at the cost of an expired certificate.
func (c *certificates) successionAt() time.Time {
	return earlier(c.known.Add(c.shared.overlap()), c.servingCA.lastCall())
}

// expires reports whether the present certificate has to be replaced although an APIService could
// not be changed: those that could be must not fail with it.
func (c *certificates) expires(now time.Time) bool {
	return c.servingCA != nil && !now.Before(c.servingCA.lastCall())
}

// bundle returns a caBundle by which clients check the certificates of all replicas.
func (c *certificates) bundle(now time.Time, present []byte) ([]byte, error) {
	if c.shared == nil {
		return nil, errors.New("there is no certificate authority yet") // the reason is the Secret's error
	}
	// Until they have been replaced, earlier replicas may serve certificates of authorities that this one knows nothing
	// of. After that only what the Secret has had is kept: a name proves nothing.
	keep := func(of *x509.Certificate) bool {
		return now.Before(c.began.Add(maxOverlap)) || c.seen[sha256.Sum256(of.Raw)]
	}
	return bundle(now, present, keep, c.shared, c.servingCA)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
