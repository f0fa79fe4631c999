package apiservice

import (
	"context"
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

// race tries again what fails because the object has been written or deleted since it was read.
func race(try func() error) (err error) {
	for range maxRaces {
		if err = try(); !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	return err
}

// authoritySecret is the Secret of the authority that the replicas share.
type authoritySecret struct {
	client   client.Client
	key      client.ObjectKey
	validity time.Duration
}

// readOrRenew returns the authority, a new one if there is none that can sign or its time has come.
// It returns one together with an error if that is about its successor.
func (s *authoritySecret) readOrRenew(ctx context.Context, now time.Time) (*authority, error) {
	var secret corev1.Secret
	err := s.client.Get(ctx, s.key, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return s.write(ctx, now, "there is no Secret", func(data map[string][]byte) error {
			return s.client.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name,
					Labels: map[string]string{managedBy: foresail}},
				Type: corev1.SecretTypeTLS, Data: data,
			})
		})
	case err != nil:
		return nil, fmt.Errorf("read the Secret %s of the certificate authority: %w", s.key, err)
	}
	present, err := parseAuthority(secret.Data, now)
	why := "its time has come"
	if err != nil {
		why = err.Error()
	} else if now.Before(present.renewal()) {
		return present, nil
	}
	next, err := s.write(ctx, now, why, func(data map[string][]byte) error {
		secret.Data = data
		return s.client.Update(ctx, &secret)
	})
	if err != nil {
		return present, err
	}
	return next, nil
}

func (s *authoritySecret) write(ctx context.Context, now time.Time, why string,
	write func(data map[string][]byte) error) (*authority, error) {
	next, err := newAuthority(now, s.validity)
	if err != nil {
		return nil, err
	}
	data, err := next.data()
	if err != nil {
		return nil, err
	}
	if err := write(data); err != nil {
		return nil, fmt.Errorf("write the Secret %s of the certificate authority: %w", s.key, err)
	}
	klog.FromContext(ctx).Info("New certificate authority for the serving certificate", "secret", s.key, "until",
		next.cert.NotAfter, "why", why)
	return next, nil
}
