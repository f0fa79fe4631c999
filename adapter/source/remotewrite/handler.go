package remotewrite

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
)

// path is where samples are pushed to.
const path = "/api/v1/write"

// Headers of the answer to a version 2 request.
const (
	samplesWritten    = "X-Prometheus-Remote-Write-Samples-Written"
	histogramsWritten = "X-Prometheus-Remote-Write-Histograms-Written"
	exemplarsWritten  = "X-Prometheus-Remote-Write-Exemplars-Written"
)

// retryAfter is what senders are asked to wait for, in seconds.
const retryAfter = "1"

// handler returns the handler of path, which checks the bearer token but leaves the rest of what WebConfigFile
// configures to Run.
func (s *Source) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+path, s.write)
	return mux
}

func (s *Source) write(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	version, err := s.receive(w, r)
	code := http.StatusNoContent
	if err != nil {
		code = answer(w, err)
	} else {
		w.WriteHeader(code)
	}
	s.telemetry.request(version, code, time.Since(began))
}

// answer tells the sender what an error is about.
func answer(w http.ResponseWriter, err error) (code int) {
	code = http.StatusInternalServerError
	if why := (*refusal)(nil); errors.As(err, &why) {
		code = why.code
	}
	if code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	http.Error(w, err.Error(), code)
	return code
}

// receive takes a request. What it returns is a refusal.
func (s *Source) receive(w http.ResponseWriter, r *http.Request) (remote.WriteMessageType, error) {
	if s.access != nil {
		if err := s.access.check(); err != nil {
			return "", err
		}
	}
	if s.token != nil {
		if err := s.token.check(w, r); err != nil {
			return "", err
		}
	}
	version, err := negotiate(r.Header)
	if err != nil {
		return version, err
	}
	if s.options.Ready != nil {
		if err := s.options.Ready(); err != nil {
			return version, &refusal{code: http.StatusServiceUnavailable, reason: fmt.Sprintf("samples cannot be assigned to pods yet: %v", err)}
		}
	}
	b, err := s.read(w, r)
	if err != nil {
		return version, err
	}
	defer s.free(b)
	return version, s.takeIn(w, version, b.decoded)
}

// takeIn decodes a request and gives its samples to the subscriptions.
func (s *Source) takeIn(w http.ResponseWriter, version remote.WriteMessageType, content []byte) error {
	b := s.batches.Get().(*batch)
	defer s.recycle(b)
	b.heard = s.options.Now()
	b.now = b.heard.UnixMilli()
	if err := b.decoder.decode(version, content, b); err != nil {
		return err
	}
	b.apply()
	s.telemetry.taken(&b.tally, &b.decoder.seen)
	if version == remote.WriteV2MessageType {
		w.Header().Set(samplesWritten, strconv.Itoa(b.written()))
		w.Header().Set(histogramsWritten, strconv.Itoa(b.decoder.seen.histograms))
		w.Header().Set(exemplarsWritten, strconv.Itoa(b.decoder.seen.exemplars))
	}
	return b.tally.verdict()
}

// recycle keeps a batch for the next request.
func (s *Source) recycle(b *batch) {
	if b.large() {
		return
	}
	b.reset()
	s.batches.Put(b)
}

// negotiate tells which message a request says that it holds.
func negotiate(h http.Header) (remote.WriteMessageType, error) {
	if encoding := h.Get("Content-Encoding"); encoding != "" && encoding != string(remote.SnappyBlockCompression) {
		return "", unsupported("Content-Encoding", encoding, string(remote.SnappyBlockCompression))
	}
	const accepted = "application/x-protobuf, with proto=prometheus.WriteRequest or proto=io.prometheus.write.v2.Request"
	kind := h.Get("Content-Type")
	if kind == "" {
		return remote.WriteV1MessageType, nil
	}
	media, parameters, err := mime.ParseMediaType(kind)
	if err != nil || media != "application/x-protobuf" {
		return "", unsupported("Content-Type", kind, accepted)
	}
	message, ok := parameters["proto"]
	if !ok {
		return remote.WriteV1MessageType, nil
	}
	version := remote.WriteMessageType(message)
	if version.Validate() != nil {
		return "", unsupported("Content-Type", kind, accepted)
	}
	return version, nil
}

func unsupported(header, value, accepted string) error {
	return &refusal{code: http.StatusUnsupportedMediaType, reason: fmt.Sprintf("%s: %.200q: must be %s", header, value, accepted)}
}
