package remotewrite

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// otlpPath is where exporters of OTLP/HTTP push metrics to.
const otlpPath = "/v1/metrics"

// otlpEncoding is an encoding of requests, and of the answers to them.
type otlpEncoding struct {
	// request returns the request in protobuf. It holds the memory that this takes.
	request  func(*Source, *body) ([]byte, error)
	response func(pmetricotlp.ExportResponse) ([]byte, error)
	status   func(proto.Message) ([]byte, error)
}

const protobufType, jsonType = "application/x-protobuf", "application/json"

var otlpEncodings = map[string]otlpEncoding{
	protobufType: {requestOfProtobuf, pmetricotlp.ExportResponse.MarshalProto, proto.Marshal},
	jsonType:     {requestOfJSON, pmetricotlp.ExportResponse.MarshalJSON, protojson.Marshal},
}

// otlpCompressions are the values of Content-Encoding.
var otlpCompressions = map[string]decompression{"gzip": unzip, "": plain, "identity": plain}

// serveOTLP answers requests of OTLP/HTTP.
func (s *Source) serveOTLP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	content, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // "" if it is none
	code, answer := s.answerOTLP(w.Header(), r, content)
	w.WriteHeader(code)
	_, _ = w.Write(answer) // senders that are gone need none
	s.telemetry.request("otlp", code, time.Since(began))
}

// answerOTLP takes a request and returns the answer, which is in the encoding of the request.
func (s *Source) answerOTLP(header http.Header, r *http.Request, content string) (code int, answer []byte) {
	encoding, known := otlpEncodings[content]
	response, err := s.receiveOTLP(header, r, encoding, known)
	if !known {
		encoding, content = otlpEncodings[jsonType], jsonType // which people can read
	}
	header.Set("Content-Type", content)
	if err == nil {
		answer, err = encoding.response(response)
	}
	if err == nil {
		return http.StatusOK, answer
	}
	why, ok := errors.AsType[*rejection](err)
	if !ok {
		why = &rejection{http.StatusInternalServerError, err.Error()}
	}
	if why.code == http.StatusServiceUnavailable {
		header.Set("Retry-After", retryAfter)
	}
	reason := strings.ToValidUTF8(why.reason, "?") // it may quote the body, and a message with anything else cannot be encoded
	answer, _ = encoding.status(status.New(statusCodeOf(why.code), reason).Proto())
	return why.code, answer
}

// statusCodeOf returns what a status code of HTTP is in a google.rpc.Status.
func statusCodeOf(code int) codes.Code {
	switch code {
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusServiceUnavailable:
		return codes.Unavailable
	case http.StatusInternalServerError:
		return codes.Internal
	default:
		return codes.InvalidArgument
	}
}

// receiveOTLP reads a request and takes its samples.
func (s *Source) receiveOTLP(header http.Header, r *http.Request, encoding otlpEncoding, known bool) (response pmetricotlp.ExportResponse, err error) {
	response = pmetricotlp.NewExportResponse()
	if why := s.checkSender(header, r); why != nil {
		return response, why
	}
	if !known {
		return response, &rejection{http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Type: %.200q: must be %s or %s", r.Header.Get("Content-Type"), protobufType, jsonType)}
	}
	decompress, ok := otlpCompressions[r.Header.Get("Content-Encoding")]
	if !ok {
		return response, &rejection{http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Encoding: %.200q: must be gzip, or left out", r.Header.Get("Content-Encoding"))}
	}
	if err := s.checkReady(); err != nil {
		return response, err
	}
	body, err := s.read(r, decompress)
	if err != nil {
		return response, err
	}
	defer s.free(body)
	request, err := encoding.request(s, body)
	if err != nil {
		return response, err
	}
	of, err := s.take(func(b *batch) error { return b.decoder.decodeOTLP(request, b) })
	if err != nil {
		return response, err
	}
	if of.reasons != "" {
		response.PartialSuccess().SetRejectedDataPoints(int64(of.rejected))
		response.PartialSuccess().SetErrorMessage(strings.ToValidUTF8(of.reasons, "?"))
	}
	return response, nil
}

func requestOfProtobuf(s *Source, b *body) ([]byte, error) {
	return b.content, s.hold(b, otlpSize(b.content))
}

// requestOfJSON encodes a request in protobuf: few are in JSON, and only messages in protobuf can be decoded in parts.
func requestOfJSON(s *Source, b *body) ([]byte, error) {
	size, err := jsonSize(b.content)
	if err != nil {
		return nil, err
	}
	if size > s.options.MaxDecodedBytes {
		return nil, tooLarge("once decoded: send protobuf, or fewer data points in a request", s.options.MaxDecodedBytes)
	}
	if err := s.hold(b, size); err != nil {
		return nil, err
	}
	request := pmetricotlp.NewExportRequest()
	if err := request.UnmarshalJSON(b.content); err != nil {
		return nil, malformed(err)
	}
	encoded, err := request.MarshalProto()
	if err != nil {
		return nil, malformed(err)
	}
	return encoded, s.hold(b, otlpSize(encoded))
}

// What parts of a text in JSON take at most once they are decoded, in bytes. Arrays of objects grow by doubling.
const (
	jsonObjectBytes  = 320
	jsonElementBytes = 16
	jsonDepth        = 100 // at most: pdata decodes without a limit what is within something else
)

// jsonSize returns a bound for the memory that decoding a text in JSON takes.
func jsonSize(text []byte) (int64, error) {
	size, depth := 2*int64(len(text)), 0 // for its strings, decoded and encoded again
	quoted, escaped := false, false
	for _, c := range text {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == ',':
			size += jsonElementBytes
		case c == '{' || c == '[':
			size += jsonObjectBytes
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth > jsonDepth {
			return 0, malformed(fmt.Errorf("it is nested more than %d deep", jsonDepth))
		}
	}
	return size, nil
}
