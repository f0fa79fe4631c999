package apiservice

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// HeldError is about an APIService that leads to another server.
type HeldError struct {
	APIService string
	Holder     string // namespace/name of its Service, or kube-apiserver
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("the APIService %s leads to %s", e.APIService, e.Holder)
}

// Free returns why versions of a group are not to be registered for a Service: a *HeldError if
// another server has one of them and the Service has none, or what went wrong with reading who has.
// What the Service has already is not given up: a restart must not end what else it serves.
func Free(ctx context.Context, c client.Reader, service Service, versions ...API) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var held *HeldError
	for _, api := range versions {
		present, err := read(ctx, c, api)
		switch {
		case err != nil:
			return err
		case present == nil:
		case service.holds(present):
			return nil
		case held == nil:
			held = &HeldError{APIService: api.Name(), Holder: nameOfHolder(present)}
		}
	}
	if held != nil {
		return held
	}
	return nil
}

// read returns the APIService of an API, nil if there is none.
func read(ctx context.Context, c client.Reader, api API) (*apiregistrationv1.APIService, error) {
	var present apiregistrationv1.APIService
	err := c.Get(ctx, client.ObjectKey{Name: api.Name()}, &present)
	switch {
	case missing(err, api.Name()):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the APIService %s: %w", api.Name(), err)
	}
	return &present, nil
}

// missing reports whether an error says that there is no object of a name. One about discovery may
// be a 404 too, and says nothing about the object.
func missing(err error, name string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == name
}
