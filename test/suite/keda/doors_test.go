//go:build long

package keda_test

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"text/template"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/ports"
	"github.com/foresail/foresail/test/env/stack"
)

//go:embed doors.yaml
var doorsYAML string

var doorsTemplate = template.Must(template.New("doors.yaml").Funcs(releaseFuncs).Parse(doorsYAML))

// door is one way in which the forecast reaches an HPA, and the application that is scaled that way.
type door struct {
	stack.App
	Door, Address string
	what          string // for the table
	path          string // that its HPA reads, below /apis

	run   stack.Run
	reads []doorRead
}

// doorRead is one reading of the metric as the HPA does it.
type doorRead struct {
	took time.Duration
	age  time.Duration // of the newest sample behind the value when it arrived
}

const (
	externalPath = "external.metrics.k8s.io/v1beta1/namespaces/doors/"
	customPath   = "custom.metrics.k8s.io/v1beta2/namespaces/doors/predictedmetrics.foresail.dev/"
)

func ownPath(name string) string {
	return externalPath + "predicted_load_total?labelSelector=predictedmetric%3D" + name
}

func doors() []*door {
	app := func(name string) stack.App {
		return stack.App{
			Namespace: "doors", Name: name, Metric: "predicted_load_total", Threshold: resource.MustParse("700m"),
			Min: 4, Max: 20,
			ServiceTime: time.Second, // so that a rate is a load
		}
	}
	all := []*door{
		{App: app("external"), what: "HPA, external metric", path: ownPath("external")},
		{App: app("autoscaler"), Door: "autoscaler", what: "spec.autoscaler", path: ownPath("autoscaler")},
		{App: app("object"), Door: "object", what: "HPA, object metric",
			path: customPath + "object/predicted_load_total"},
		{App: app("keda"), Door: "keda", what: "ScaledObject of KEDA, read through Foresail in front",
			path: externalPath + "s0-predicted_load_total?labelSelector=scaledobject.keda.sh%2Fname%3Dkeda"},
		{App: app("reactive"), what: "HPA, the same without a forecast", path: ownPath("reactive")},
	}
	all[4].Reactive = true
	return all
}

// rise is from what 4 pods take at the threshold to what 14 take, within a minute.
var rise = loadgen.Profile{
	{At: 0, RPS: 2.5}, {At: 20 * time.Second, RPS: 2.5}, {At: 80 * time.Second, RPS: 9.5}, {At: 110 * time.Second,
		RPS: 9.5},
	{At: 140 * time.Second, RPS: 2.5}, {At: 180 * time.Second, RPS: 2.5},
}

// Every door serves one process' forecasts of the same ramp, all at once, in front of KEDA's
// adapter. The values agree, and every target is scaled by them before the one without a forecast.
func TestRampThroughEveryDoor(t *testing.T) {
	all := doors()
	front := startFront(t, all)
	deploy(t, all)
	agree(t, all)

	ctx, cancel := context.WithTimeout(t.Context(), rise.Duration())
	defer cancel()
	var played sync.WaitGroup
	for _, d := range all {
		played.Go(func() {
			d.run.App = d.App
			err := shared.stack.Carry(ctx, d.App, rise,
				func(m stack.Moment) { d.run.Moments = append(d.run.Moments, m) })
			if ctx.Err() == nil {
				assert.NoError(t, err)
			}
		})
		played.Go(func() { d.readUntil(ctx, t, front) })
	}
	played.Wait()
	t.Logf("one ramp, HPA sync every 3 s, pods ready after 4 s:\n%s", table(all))
	reactive := all[len(all)-1]
	for _, d := range all[:len(all)-1] {
		assert.Positive(t, d.lead(reactive), "%s is no earlier than without a forecast", d.what)
		assert.Less(t, d.run.SecondsAbove(), reactive.run.SecondsAbove(), d.what)
		assert.NotEmpty(t, d.reads, d.what)
	}
}

// startFront runs the one process that serves all doors, and has the API server ask it until the test ends.
func startFront(t *testing.T, all []*door) *stack.Adapter {
	port, err := ports.Take()
	require.NoError(t, err)
	address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 4}), uint16(port)).String()
	for _, d := range all {
		d.Address = address
	}
	cluster := shared.stack.Cluster
	require.NoError(t, foresail.Apply(t.Context(), cluster, "components/forward/rbac.yaml",
		"components/custom-metrics/rbac.yaml"))
	cert, _, err := cluster.ServingCertificate("127.0.0.4")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(cert), "ca.crt"), cluster.CA(), 0o600))
	front, err := shared.stack.StartAdapter(t.Context(), "doors", "--custom-metrics",
		"--forward-url="+shared.keda.AdapterURL(), "--forward-ca-file="+shared.tls.ca,
		"--keda-address="+address, "--keda-cert-dir="+filepath.Dir(cert))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("not within a minute"))
	defer cancel()
	require.NoError(t, front.WaitReady(ctx))
	custom := controlplane.AggregatedAPI{
		Group: "custom.metrics.k8s.io", Version: "v1beta2", Port: front.SecurePort, Namespace: foresail.Namespace,
		Service: foresail.ServiceName,
	}
	require.NoError(t, shared.stack.Register(ctx, front))
	require.NoError(t, cluster.RegisterAggregated(ctx, custom))
	require.NoError(t, cluster.WaitAggregated(ctx, custom.Name()))
	t.Cleanup(func() {
		assert.NoError(t, shared.keda.Register(context.Background()))
		apis := cluster.Dynamic().Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1",
			Resource: "apiservices"})
		// a dead one holds up the end of namespaces
		assert.NoError(t, apis.Delete(context.Background(), custom.Name(), metav1.DeleteOptions{}))
	})
	return front
}

func deploy(t *testing.T, all []*door) {
	var manifest bytes.Buffer
	for _, d := range all {
		require.NoError(t, doorsTemplate.Execute(&manifest, d))
		manifest.WriteString("\n---\n")
		shared.stack.Shares.Set(d.Namespace, d.Name, func() float64 { return rise.Rate(0) })
	}
	_, err := shared.stack.Cluster.Apply(t.Context(), manifest.Bytes())
	require.NoError(t, err)
	t.Cleanup(func() {
		namespaces := shared.stack.Cluster.Client().CoreV1().Namespaces()
		assert.NoError(t, namespaces.Delete(context.Background(), all[0].Namespace, metav1.DeleteOptions{}))
	})
}

// agree waits until every door serves what the steady load needs, which is the same for all, to the digit.
func agree(t *testing.T, all []*door) {
	for _, d := range all {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			value, err := d.value(t.Context())
			require.NoError(c, err)
			if !d.Reactive { // it serves the present load as it is
				assert.Equal(c, int64(2800), value, "what four pods take")
			}
			state, err := shared.stack.Look(t.Context(), d.App)
			require.NoError(c, err)
			assert.Equal(c, 4, state.Desired, "the HPA reads it")
		}, 2*time.Minute, 250*time.Millisecond, d.what)
	}
}

// value is what the HPA of the door reads, in thousandths.
func (d *door) value(ctx context.Context) (int64, error) {
	client, err := rest.HTTPClientFor(shared.stack.Cluster.RESTConfig())
	if err != nil {
		return 0, err
	}
	got, err := get(ctx, client, shared.stack.Cluster.RESTConfig().Host+"/apis/"+d.path, "application/json")
	if err != nil {
		return 0, err
	}
	if got.status != http.StatusOK {
		return 0, fmt.Errorf("%d: %s", got.status, got.body)
	}
	var list struct {
		Items []struct{ Value resource.Quantity }
	}
	if err := json.Unmarshal([]byte(got.body), &list); err != nil {
		return 0, err
	}
	if len(list.Items) != 1 {
		return 0, fmt.Errorf("%d values: %s", len(list.Items), got.body)
	}
	return list.Items[0].Value.MilliValue(), nil
}

// readUntil reads the metric as the HPA does, twice a second.
func (d *door) readUntil(ctx context.Context, t *testing.T, front *stack.Adapter) {
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		read, ok, err := d.read(ctx, front)
		if err != nil && ctx.Err() == nil {
			assert.NoError(t, err, d.what)
			return
		}
		if ok {
			d.reads = append(d.reads, read)
		}
	}
}

// read is false if a sample came while the value was on its way: then nobody knows which is behind it.
func (d *door) read(ctx context.Context, front *stack.Adapter) (r doorRead, ok bool, err error) {
	before, err := d.newestSample(ctx, front)
	if err != nil {
		return r, false, err
	}
	begun := time.Now()
	if _, err := d.value(ctx); err != nil {
		return r, false, err
	}
	end := time.Now()
	after, err := d.newestSample(ctx, front)
	r = doorRead{took: end.Sub(begun), age: end.Sub(before)}
	const sameSample = 100 * time.Millisecond // samples are a second apart, and a page is read in a few milliseconds
	return r, after.Sub(before) < sameSample, err
}

// newestSample is when the newest sample behind the forecast was read.
func (d *door) newestSample(ctx context.Context, front *stack.Adapter) (time.Time, error) {
	metrics, err := front.Metrics(ctx)
	if err != nil {
		return time.Time{}, err
	}
	age, ok := metrics.Gauge("foresail_sample_age_seconds", "namespace", d.Namespace, "predictedmetric", d.Name)
	if !ok {
		return time.Time{}, fmt.Errorf("no age of the samples of %s", d.Name)
	}
	return time.Now().Add(-time.Duration(age * float64(time.Second))), nil
}

// lead is how much earlier than another a door has its target ask for more replicas, on average
// over their number.
func (d *door) lead(other *door) time.Duration {
	var sum time.Duration
	n := 0
	for replicas := d.Min + 1; replicas <= 14; replicas++ {
		mine, ok := d.run.Reached(replicas)
		theirs, too := other.run.Reached(replicas)
		if ok && too {
			sum, n = sum+theirs-mine, n+1
		}
	}
	if n == 0 {
		return 0
	}
	return sum / time.Duration(n)
}

func table(all []*door) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	reactive := all[len(all)-1]
	fmt.Fprintln(w, "door\tsample age p50\tmost\tread p50\tp99\tearlier by\ts above threshold\tpod-seconds")
	for _, d := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\n", d.what,
			d.quantile(0.5, doorRead.sampleAge), d.quantile(1, doorRead.sampleAge), d.quantile(0.5,
				doorRead.latency), d.quantile(0.99, doorRead.latency),
			d.lead(reactive).Round(100*time.Millisecond), d.run.SecondsAbove(), d.run.PodSeconds())
	}
	_ = w.Flush() // to memory
	return text.String()
}

func (r doorRead) sampleAge() time.Duration { return r.age.Round(10 * time.Millisecond) }
func (r doorRead) latency() time.Duration   { return r.took.Round(time.Millisecond) }

func (d *door) quantile(q float64, of func(doorRead) time.Duration) time.Duration {
	if len(d.reads) == 0 {
		return 0
	}
	values := make([]time.Duration, len(d.reads))
	for i, r := range d.reads {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values[int(q*float64(len(values)-1))]
}
