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

// path is where senders push samples to.
const path = "/api/v1/write"

// retryAfter is how long senders are asked to wait, in seconds.
const retryAfter = "1"

// handler returns the handler of path and otlpPath. It checks the bearer token; Run serves it with the rest of WebConfigFile.
func (s *Source) handler() http.Handler {
	versions := remote.MessageTypes{remote.WriteV1MessageType, remote.WriteV2MessageType}
	mux := http.NewServeMux()
	mux.Handle("POST "+path, remote.NewWriteHandler(store{s}, versions, remote.WithWriteHandlerMiddlewares(s.measure, s.authorize)))
	mux.HandleFunc("POST "+otlpPath, s.serveOTLP)
	return recallable(mux)
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

// measure records requests in metrics. It also removes spaces from the Content-Type, because [remote.ParseProtoMsg] ignores
// parameters that follow one and would take version 2 for version 1.
func (s *Source) measure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		content := cmp.Or(strings.ReplaceAll(r.Header.Get("Content-Type"), " ", ""), "application/x-protobuf")
		r.Header.Set("Content-Type", content)
		version, _ := remote.ParseProtoMsg(content) // "" if it is none
		answer := &statusWriter{ResponseWriter: w}
		next.ServeHTTP(answer, r)
		s.telemetry.request(versionOf(version), answer.code, time.Since(began))
	})
}

// authorize lets requests through whose sender may write.
func (s *Source) authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := s.checkSender(w.Header(), r); why != nil {
			if why.code == http.StatusServiceUnavailable {
				w.Header().Set("Retry-After", retryAfter)
			}
			http.Error(w, why.reason, why.code)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Source) checkSender(header http.Header, r *http.Request) *rejection {
	if s.access != nil {
		if why := s.access.check(); why != nil {
			return why
		}
	}
	if s.token != nil {
		return s.token.check(header, r)
	}
	return nil
}

// store takes the requests that hold a message of a known version.
type store struct{ *Source }

// Store implements what [remote.NewWriteHandler] requires.
func (s store) Store(r *http.Request, version remote.WriteMessageType) (*remote.WriteResponse, error) {
	response := remote.NewWriteResponse()
	err := s.receive(r, version, response)
	if why, ok := errors.AsType[*rejection](err); ok {
		response.SetStatusCode(why.code)
		if why.code == http.StatusServiceUnavailable {
			response.SetExtraHeader("Retry-After", retryAfter)
		}
	}
	return response, err
}

// receive reads a request and takes its samples. Its errors are *rejection.
func (s *Source) receive(r *http.Request, version remote.WriteMessageType, response *remote.WriteResponse) error {
	const snappy = string(remote.SnappyBlockCompression)
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != snappy {
		return &rejection{http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Encoding: %.200q: must be %s", encoding, snappy)}
	}
	if err := s.checkReady(); err != nil {
		return err
	}
	body, err := s.read(r, unsnappy)
	if err != nil {
		return err
	}
	defer s.free(body)
	of, err := s.take(func(b *batch) error { return b.decoder.decode(version, body.content, b) })
	if err != nil {
		return err
	}
	response.Samples, response.Histograms, response.Exemplars = of.seen.samples-of.rejected, of.seen.histograms, of.seen.exemplars
	if of.reasons != "" {
		return &rejection{http.StatusBadRequest, of.reasons}
	}
	return nil
}

// checkReady asks senders to try again while pods are not known.
func (s *Source) checkReady() error {
	if s.options.Ready == nil {
		return nil
	}
	if err := s.options.Ready(); err != nil {
		return &rejection{http.StatusServiceUnavailable, fmt.Sprintf("samples cannot be assigned to pods yet: %v", err)}
	}
	return nil
}

// outcome is what became of a request that was decoded.
type outcome struct {
	seen     content
	rejected int    // samples
	reasons  string // "" if nothing was rejected
}

// take has a request decoded and gives its samples to the subscriptions.
func (s *Source) take(decode func(*batch) error) (outcome, error) {
	b := s.batches.Get().(*batch)
	defer s.recycle(b)
	b.received = s.options.Now()
	b.now = b.received.UnixMilli()
	if err := decode(b); err != nil {
		return outcome{}, err
	}
	b.apply()
	s.telemetry.taken(&b.tally, &b.decoder.seen)
	return outcome{b.decoder.seen, b.rejections(), b.tally.reasons()}, nil
}

// recycle keeps a batch for the next request.
func (s *Source) recycle(b *batch) {
	if b.large() {
		return
	}
	b.reset()
	s.batches.Put(b)
}
