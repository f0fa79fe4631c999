package externalmetrics

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkOwnReads is how long reads of Foresail's metrics take over HTTPS while 20 clients read
// metrics that it does not have: without a second adapter, and with one that accepts connections
// and never answers.
func BenchmarkOwnReads(b *testing.B) {
	_, caFile := serveTLS(b, http.NotFoundHandler())
	hole, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and no one reads
	require.NoError(b, err)
	defer hole.Close()
	for _, c := range []struct {
		name   string
		second Second
	}{{"none", nil}, {"blackhole", newForwarder(b, hole.Addr().String(), caFile)}} {
		b.Run("second="+c.name, func(b *testing.B) {
			s := serveBeside(b, c.second, fresh("a", "x"))
			defer s.others(20)()
			client := newHTTPClient()
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				code, err := s.read(client, totalPath+"?labelSelector=predictedmetric%3Da")
				took = append(took, time.Since(began))
				require.NoError(b, err)
				require.Equal(b, http.StatusOK, code)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-µs")
		})
	}
}

func newHTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
}

// read reads a path as the HPA controller does, and returns the status.
func (s *served) read(client *http.Client, path string) (int, error) {
	r, err := http.NewRequest(http.MethodGet, s.url(path), nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer "+hpaUser)
	response, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// others has n clients each read another adapter's metric every 50 ms or as fast as they are
// answered, until the function is called that it returns.
func (s *served) others(n int) (stop func()) {
	var clients sync.WaitGroup
	over := make(chan struct{})
	for range n {
		clients.Go(func() {
			client := newHTTPClient()
			for {
				_, _ = s.read(client, otherPath+"queue")
				select {
				case <-over:
					return
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
	}
	return func() {
		close(over)
		clients.Wait()
	}
}
