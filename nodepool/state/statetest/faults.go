package statetest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

// fault is the fault of the next write.
type fault int

const (
	none        fault = iota
	loseRequest       // it does not reach the server
	loseAnswer        // it does, and the connection ends before the answer
	answerLate        // it does, and a gateway that timed out answers and asks to try again
)

var errLost = errors.New("connection lost")

// faults is a network with injected faults.
type faults struct {
	mu   sync.Mutex
	lose fault
}

func (f *faults) next(lose fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lose = lose
}

// happened reports whether the last fault has affected a write.
func (f *faults) happened() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lose == none
}

func (f *faults) wrap(transport http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		lose := none
		if isWrite(request) {
			f.mu.Lock()
			lose, f.lose = f.lose, none
			f.mu.Unlock()
		}
		if lose == loseRequest {
			return nil, errLost
		}
		response, err := transport.RoundTrip(request)
		if lose == none || err != nil {
			return response, err
		}
		_ = response.Body.Close()
		if lose == loseAnswer {
			return nil, errLost
		}
		return &http.Response{
			Status: "504 Gateway Timeout", StatusCode: http.StatusGatewayTimeout, Proto: "HTTP/1.1",
			ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Retry-After": {"1"}}, Body: io.NopCloser(strings.NewReader("")), Request: request,
		}, nil
	})
}

// isWrite reports whether a request is a write: of Kubernetes by its method, of DynamoDB, whose
// requests are all POST, by its target.
func isWrite(request *http.Request) bool {
	if target := request.Header.Get("X-Amz-Target"); target != "" {
		return strings.HasSuffix(target, ".PutItem") || strings.HasSuffix(target, ".UpdateItem")
	}
	return request.Method != http.MethodGet
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
