// Package kubeapi holds what the doors over the metrics APIs of Kubernetes share: how an API server
// reports the errors of package serving, and how reads are counted.
//
// An error is 404 where a metric or a PredictedMetric does not exist, 400 where a read makes no
// sense, and 503 where there is no forecast at the moment. No answer carries Retry-After: the HPA's
// client would wait for it, and other HPAs with it.
package kubeapi

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/adapter/serving"
)

// StatusError is an error of package serving as the Kubernetes API reports it.
type StatusError struct{ cause *serving.Error }

// AsStatusError returns what the API reports of an error, nil if it is nil.
func AsStatusError(err error) *StatusError {
	if err == nil {
		return nil
	}
	return &StatusError{serving.AsError(err)}
}

func (e *StatusError) Error() string { return e.cause.Message }
func (e *StatusError) Unwrap() error { return e.cause }

// Status implements apierrors.APIStatus. It has no RetryAfterSeconds: the HPA's client would sleep
// for it, and keep other HPAs waiting.
func (e *StatusError) Status() metav1.Status {
	status := metav1.Status{Status: metav1.StatusFailure, Message: e.cause.Message}
	switch e.cause.Class {
	case serving.NotFound:
		status.Code, status.Reason = http.StatusNotFound, metav1.StatusReasonNotFound
	case serving.Invalid:
		status.Code, status.Reason = http.StatusBadRequest, metav1.StatusReasonBadRequest
	case serving.Unavailable:
		status.Code, status.Reason = http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
	default:
		status.Code, status.Reason = http.StatusInternalServerError, metav1.StatusReasonInternalError
	}
	if e.cause.Name != "" {
		status.Details = &metav1.StatusDetails{Group: "foresail.dev", Kind: "predictedmetrics", Name: e.cause.Name}
	}
	return status
}
