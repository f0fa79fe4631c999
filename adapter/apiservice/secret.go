package apiservice

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxRaces is how often a replica tries what it loses to others.
const maxRaces = 3

// readAuthority reads the authority that the replicas share, and writes another one if there is none that can sign, or if it
// is time to. After an error the last one stays.
func (r *Registrar) readAuthority(ctx context.Context, now time.Time) error {
	if r.o.Secret == "" {
		return nil
	}
	return race(func() error {
		found, err := r.readOrRenew(ctx, now)
		if found != nil && (r.shared == nil || !r.shared.cert.Equal(found.cert)) {
			r.shared, r.known = found, time.Time{}
			r.seen[sha256.Sum256(found.cert.Raw)] = true
		}
		return err
	})
}

// race tries again what fails because the object has been written or deleted since it was read.
func race(try func() error) (err error) {
	for range maxRaces {
		if err = try(); !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	return err
}

func (r *Registrar) secretKey() client.ObjectKey {
	return client.ObjectKey{Namespace: r.o.Service.Namespace, Name: r.o.Secret}
}

// readOrRenew returns an authority together with an error if that is about its successor.
func (r *Registrar) readOrRenew(ctx context.Context, now time.Time) (*authority, error) {
	key := r.secretKey()
	var secret corev1.Secret
	err := r.o.Client.Get(ctx, key, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return r.writeAuthority(ctx, now, "there is no Secret", func(data map[string][]byte) error {
			return r.o.Client.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{managedBy: foresail}},
				Type:       corev1.SecretTypeTLS, Data: data,
			})
		})
	case err != nil:
		return nil, fmt.Errorf("read the Secret %s of the certificate authority: %w", key, err)
	}
	present, err := parseAuthority(secret.Data, now)
	why := "its time has come"
	if err != nil {
		why = err.Error()
	} else if now.Before(present.renewal()) {
		return present, nil
	}
	next, err := r.writeAuthority(ctx, now, why, func(data map[string][]byte) error {
		secret.Data = data
		return r.o.Client.Update(ctx, &secret)
	})
	if err != nil {
		return present, err
	}
	return next, nil
}

func (r *Registrar) writeAuthority(ctx context.Context, now time.Time, why string, write func(data map[string][]byte) error) (*authority, error) {
	next, err := newAuthority(now, r.o.Validity)
	if err != nil {
		return nil, err
	}
	data, err := next.data()
	if err != nil {
		return nil, err
	}
	if err := write(data); err != nil {
		return nil, fmt.Errorf("write the Secret %s of the certificate authority: %w", r.secretKey(), err)
	}
	klog.FromContext(ctx).Info("New certificate authority for the serving certificate", "secret", r.secretKey(), "until", next.cert.NotAfter, "why", why)
	return next, nil
}
