package remotewrite

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
)

// path is the path that senders push samples to.
const path = "/api/v1/write"

// writeHandler answers requests of remote write.
type writeHandler struct{ *ingester }

// handler returns the handler of path. It checks the bearer token; Run serves it with the rest of WebConfigFile.
func (h writeHandler) handler() http.Handler {
	versions := remote.MessageTypes{remote.WriteV1MessageType, remote.WriteV2MessageType}
	return remote.NewWriteHandler(h, versions, remote.WithWriteHandlerMiddlewares(h.measure, h.authorize))
}

// statusWriter keeps the status code of an answer.
type statusWriter struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

// measure records requests in metrics. It also removes spaces from the Content-Type, because
// [remote.ParseProtoMsg] ignores parameters that follow one and would take version 2 for version 1.
func (h writeHandler) measure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		content := cmp.Or(strings.ReplaceAll(r.Header.Get("Content-Type"), " ", ""), "application/x-protobuf")
		r.Header.Set("Content-Type", content)
		version, _ := remote.ParseProtoMsg(content) // "" if it is none
		answer := &statusWriter{ResponseWriter: w}
		next.ServeHTTP(answer, r)
		h.telemetry.request(versionOf(version), answer.code, time.Since(began))
	})
}

// authorize admits requests whose sender may write.
func (h writeHandler) authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := h.access.check(w.Header(), r); why != nil {
			if why.code == http.StatusServiceUnavailable {
				w.Header().Set("Retry-After", retryAfter)
			}
			http.Error(w, why.reason, why.code)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Store implements the storage that [remote.NewWriteHandler] requires.
func (h writeHandler) Store(r *http.Request, version remote.WriteMessageType) (*remote.WriteResponse, error) {
	response := remote.NewWriteResponse()
	err := h.receive(r, version, response)
	if why, ok := errors.AsType[*rejection](err); ok {
		response.SetStatusCode(why.code)
		if why.code == http.StatusServiceUnavailable {
			response.SetExtraHeader("Retry-After", retryAfter)
		}
	}
	return response, err
}

// receive reads a request and takes its samples. Its errors are *rejection.
func (h writeHandler) receive(r *http.Request, version remote.WriteMessageType, to *remote.WriteResponse) error {
	const snappy = string(remote.SnappyBlockCompression)
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != snappy {
		return &rejection{http.StatusUnsupportedMediaType,
			fmt.Sprintf("Content-Encoding: %.200q: must be %s", encoding, snappy)}
	}
	of, err := h.take(r, unsnappy, func(body *body,
		b *batch) error {
		return b.decoder.Write(version, body.content, b)
	})
	if err != nil {
		return err
	}
	to.Samples, to.Histograms, to.Exemplars = of.seen.Samples-of.rejected, of.seen.Histograms, of.seen.Exemplars
	if of.reasons != "" {
		return &rejection{http.StatusBadRequest, of.reasons}
	}
	return nil
}
