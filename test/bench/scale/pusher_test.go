package scale

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

const (
	// pushPath is where remote write is taken.
	pushPath = "/api/v1/write"
	// loadMetric is what the pods expose.
	loadMetric = "app_load"
	// podPort is where they would.
	podPort = 9090
	// batchSize is how many samples Prometheus sends at once.
	batchSize = 2000
	// shards is how many connections it does so over.
	shards = 4
	// mostBehind is how late samples may be sent.
	mostBehind = time.Minute
)

// protocol is a version of remote write.
type protocol struct {
	name, contentType, version string
	prepare                    func([]series) batch
}

func remoteWriteV1() protocol {
	return protocol{"v1", "application/x-protobuf", "0.1.0", newBatchV1}
}

func remoteWriteV2() protocol {
	return protocol{"v2", "application/x-protobuf;proto=io.prometheus.write.v2.Request", "2.0.0", newBatchV2}
}

// series is one pod's.
type series struct {
	labels [][2]string // sorted by name
	phase  float64     // of the application's load
}

// batch is a request whose series stay the same.
type batch interface {
	set(i int, value float64, at int64)
	Size() int
	MarshalToSizedBuffer([]byte) (int, error)
}

type batchV1 struct{ prompb.WriteRequest }

func newBatchV1(of []series) batch {
	request := &batchV1{}
	for _, s := range of {
		t := prompb.TimeSeries{Samples: make([]prompb.Sample, 1)}
		for _, l := range s.labels {
			t.Labels = append(t.Labels, prompb.Label{Name: l[0], Value: l[1]})
		}
		request.Timeseries = append(request.Timeseries, t)
	}
	return request
}

func (r *batchV1) set(i int, value float64, at int64) {
	r.Timeseries[i].Samples[0] = prompb.Sample{Value: value, Timestamp: at}
}

type batchV2 struct{ writev2.Request }

func newBatchV2(of []series) batch {
	request, symbols := &batchV2{}, writev2.NewSymbolTable()
	for _, s := range of {
		t := writev2.TimeSeries{
			Samples:  make([]writev2.Sample, 1),
			Metadata: writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_GAUGE},
		}
		for _, l := range s.labels {
			t.LabelsRefs = append(t.LabelsRefs, symbols.Symbolize(l[0]), symbols.Symbolize(l[1]))
		}
		request.Timeseries = append(request.Timeseries, t)
	}
	request.Symbols = symbols.Symbols()
	return request
}

func (r *batchV2) set(i int, value float64, at int64) {
	r.Timeseries[i].Samples[0] = writev2.Sample{Value: value, Timestamp: at}
}

// seriesOf returns the series of all pods of a population, as a Prometheus server with the usual
// relabelling has them.
func seriesOf(p population) []series {
	all := make([]series, 0, p.pods())
	for i := range p.apps {
		for k := range p.podsPerApp {
			pod, address := p.pod(i, k), p.address(i, k)
			all = append(all, series{
				phase: 2 * math.Pi * float64(i) / float64(p.apps),
				labels: [][2]string{
					{"__name__", loadMetric}, {"app", p.app(i).Name}, {"cluster", "eu-central-1"}, {"container", "app"},
					{"endpoint", "metrics"}, {"instance", fmt.Sprintf("%s:%d", address, podPort)},
					{"job", "kubernetes-pods"}, {"namespace", pod.Namespace}, {"node",
						fmt.Sprintf("node-%04d", (i+k)%1000)},
					{"pod", pod.Name},
				},
			})
		}
	}
	return all
}

// pusher sends a sample of every series once a second, as a Prometheus server does that scrapes
// each at a moment of its own: in batches of series from everywhere, spread over the second.
type pusher struct {
	protocol
	url    string
	client *http.Client
	shards [][]*push

	sent, acknowledged, retried atomic.Int64 // samples, and requests sent again
	// of requests, in s, from when they were due to when they were acknowledged
	latencies quantiles
	ended     chan struct{} // closed when run has returned
	stop      func()        // ends a run and checks how it went
}

// push is one batch and when in each second it is sent.
type push struct {
	batch  batch
	series []series
	offset time.Duration
	random *rand.Rand
}

func newPusher(p population, version protocol, address string) *pusher {
	all := seriesOf(p)
	shuffle := rand.New(rand.NewPCG(1, 2))
	shuffle.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	count := (len(all) + batchSize - 1) / batchSize
	w := &pusher{
		protocol: version, url: "http://" + address + pushPath, shards: make([][]*push, min(shards, count)),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: shards}, Timeout: 30 * time.Second},
	}
	for i := range count {
		of := all[i*len(all)/count : (i+1)*len(all)/count]
		shard := i % len(w.shards)
		w.shards[shard] = append(w.shards[shard], &push{
			batch: version.prepare(of), series: of, random: rand.New(rand.NewPCG(3, uint64(i))),
			offset: time.Duration(i) * time.Second / time.Duration(count),
		})
	}
	return w
}

// startPushing waits until samples are taken and pushes until the benchmark ends or stop is called.
func startPushing(b *testing.B, f *adapter, p population, version protocol) *pusher {
	b.Helper()
	w := newPusher(p, version, f.push)
	nothing := snappy.Encode(nil, nil)
	for limit := time.Now().Add(startLimit); ; {
		_, err := w.post(nothing)
		if err == nil {
			break
		}
		if time.Now().After(limit) {
			b.Fatalf("no samples are taken: %v", err)
		}
		select {
		case <-f.Ended():
			b.Fatal(f.Failure())
		case <-time.After(500 * time.Millisecond):
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.ended = make(chan struct{})
	var failed error
	go func() {
		defer close(w.ended)
		failed = w.run(ctx)
	}()
	end := sync.OnceValue(func() error {
		cancel()
		<-w.ended
		return failed
	})
	w.stop = func() { require.NoError(b, end()) }
	b.Cleanup(func() { assert.NoError(b, end()) })
	return w
}

// run pushes until the context ends. What has been begun by then is finished. A receiver that keeps
// up late delays samples but does not lose any.
func (w *pusher) run(ctx context.Context) error {
	defer w.client.CloseIdleConnections()
	begun := time.Now().Truncate(time.Second).Add(time.Second)
	sending := errgroup.Group{}
	for _, pushes := range w.shards {
		sending.Go(func() error {
			var buffers [2][]byte
			for second := 0; ; second++ {
				for _, p := range pushes {
					at := begun.Add(time.Duration(second)*time.Second + p.offset)
					select {
					case <-ctx.Done():
						return nil
					case <-time.After(time.Until(at)):
					}
					if late := time.Since(at); late > mostBehind {
						return fmt.Errorf("remote write is %s behind: the receiver cannot keep up", late)
					}
					if err := w.send(p, at, &buffers); err != nil {
						return err
					}
				}
			}
		})
	}
	return sending.Wait()
}

// fill sets the samples of a second: a load that turns within the hour, and what pods differ by.
// The samples were read within the tenth of a second before.
func (p *push) fill(at time.Time) {
	hour := 2 * math.Pi * float64(at.UnixMilli()%3_600_000) / 3_600_000
	for i, s := range p.series {
		value := 0.5*(1+0.1*math.Sin(hour+s.phase)) + 0.02*p.random.NormFloat64()
		p.batch.set(i, value, at.UnixMilli()-p.random.Int64N(100))
	}
}

// send sends a batch until it is taken. What is refused for good is an error.
func (w *pusher) send(p *push, at time.Time, buffers *[2][]byte) error {
	p.fill(at)
	size := p.batch.Size()
	if cap(buffers[0]) < size {
		buffers[0] = make([]byte, size+size/8)
	}
	plain := buffers[0][:size]
	if _, err := p.batch.MarshalToSizedBuffer(plain); err != nil {
		return err
	}
	buffers[1] = snappy.Encode(buffers[1][:cap(buffers[1])], plain)
	w.sent.Add(int64(len(p.series)))
	for wait := 30 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		again, err := w.post(buffers[1])
		if err == nil {
			w.acknowledged.Add(int64(len(p.series)))
			w.latencies.add(time.Since(at).Seconds())
			return nil
		}
		if !again || time.Since(at) > mostBehind {
			return err
		}
		w.retried.Add(1)
		time.Sleep(wait)
	}
}

// post sends a body and reports whether to try again if it was not accepted.
func (w *pusher) post(body []byte) (again bool, err error) {
	request, err := http.NewRequest(http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Encoding", "snappy")
	request.Header.Set("Content-Type", w.contentType)
	request.Header.Set("X-Prometheus-Remote-Write-Version", w.version)
	request.Header.Set("User-Agent", "Prometheus/3.12.0")
	response, err := w.client.Do(request)
	if err != nil {
		return true, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return true, err
	}
	if response.StatusCode/100 == 2 {
		return false, nil
	}
	again = response.StatusCode/100 == 5 || response.StatusCode == http.StatusTooManyRequests
	return again, fmt.Errorf("remote write: %s: %s", strconv.Itoa(response.StatusCode), answer)
}
