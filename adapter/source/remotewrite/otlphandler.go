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

	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
)

// otlpPath is where exporters of OTLP/HTTP push metrics to.
const otlpPath = "/v1/metrics"

// otlpEncoding is an encoding of requests, and of the answers to them.
type otlpEncoding struct {
	// request returns the request in protobuf. The body holds the memory that decoding it takes.
	request  func(*body) ([]byte, error)
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

// otlpHandler answers requests of OTLP/HTTP.
type otlpHandler struct{ *ingester }

// ServeHTTP implements http.Handler.
func (h otlpHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	content, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // "" if it is none
	code, answer := h.answer(w.Header(), r, content)
	w.WriteHeader(code)
	_, _ = w.Write(answer) // senders that are gone need none
	h.telemetry.request("otlp", code, time.Since(began))
}

// answer takes a request and returns the answer, which is in the encoding of the request.
func (h otlpHandler) answer(header http.Header, r *http.Request, content string) (code int, answer []byte) {
	encoding, known := otlpEncodings[content]
	response := pmetricotlp.NewExportResponse()
	err := h.receive(header, r, content, response)
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
	// The reason may quote the body, and a message with anything else cannot be encoded.
	reason := strings.ToValidUTF8(why.reason, "?")
	answer, _ = encoding.status(status.New(statusCodeOf(why.code), reason).Proto())
	return why.code, answer
}

// statusCodeOf returns the code of a google.rpc.Status for a status code of HTTP.
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

// receive reads a request and takes its samples.
func (h otlpHandler) receive(header http.Header, r *http.Request, content string, to pmetricotlp.ExportResponse) error {
	if why := h.access.check(header, r); why != nil {
		return why
	}
	encoding, ok := otlpEncodings[content]
	if !ok {
		return &rejection{http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Type: %.200q: must be %s or %s",
			r.Header.Get("Content-Type"), protobufType, jsonType)}
	}
	decompress, ok := otlpCompressions[r.Header.Get("Content-Encoding")]
	if !ok {
		return &rejection{http.StatusUnsupportedMediaType,
			fmt.Sprintf("Content-Encoding: %.200q: must be gzip, or left out",
				r.Header.Get("Content-Encoding"))}
	}
	of, err := h.take(r, decompress, func(body *body, b *batch) error {
		request, err := encoding.request(body)
		if err != nil {
			return err
		}
		return b.decoder.OTLP(request, b)
	})
	if err != nil {
		return err
	}
	if of.reasons != "" {
		to.PartialSuccess().SetRejectedDataPoints(int64(of.rejected))
		to.PartialSuccess().SetErrorMessage(strings.ToValidUTF8(of.reasons, "?"))
	}
	return nil
}

func requestOfProtobuf(b *body) ([]byte, error) { return b.content, b.hold(decode.OTLPSize(b.content)) }

// requestOfJSON encodes a request in protobuf: few are in JSON, and only messages in protobuf can be decoded in parts.
func requestOfJSON(b *body) ([]byte, error) {
	size, err := jsonSize(b.content)
	if err != nil {
		return nil, err
	}
	if size > b.owner.maxDecoded {
		return nil, tooLarge("once decoded: send protobuf, or fewer data points in a request", b.owner.maxDecoded)
	}
	if err := b.hold(size); err != nil {
		return nil, err
	}
	request := pmetricotlp.NewExportRequest()
	if err := request.UnmarshalJSON(b.content); err != nil {
		return nil, decode.Malformed(err)
	}
	encoded, err := request.MarshalProto()
	if err != nil {
		return nil, decode.Malformed(err)
	}
	return encoded, b.hold(decode.OTLPSize(encoded))
}

// The maximum size of parts of a JSON text once they are decoded, in bytes. Arrays of objects grow by doubling.
const (
	jsonObjectBytes  = 320
	jsonElementBytes = 16
	maxJSONDepth     = 100 // pdata decodes nested values without a limit
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
		if depth > maxJSONDepth {
			return 0, decode.Malformed(fmt.Errorf("it is nested more than %d deep", maxJSONDepth))
		}
	}
	return size, nil
}
