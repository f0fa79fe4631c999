package monitoring

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
)

// Write adds samples to a server that was started with PrometheusOptions.History: of a past in
// which it did not run.
func (p *Prometheus) Write(ctx context.Context, series ...prompb.TimeSeries) error {
	message := prompb.WriteRequest{Timeseries: series}
	body, err := message.Marshal()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+"/api/v1/write",
		bytes.NewReader(snappy.Encode(nil, body)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Encoding", "snappy")
	request.Header.Set("Content-Type", "application/x-protobuf")
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		return fmt.Errorf("%s/api/v1/write: %s: %s", p.URL, response.Status, text)
	}
	return nil
}
