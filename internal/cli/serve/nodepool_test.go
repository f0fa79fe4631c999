package serve

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
	"github.com/foresail/foresail/nodepool/cost"
	"github.com/foresail/foresail/nodepool/cost/costtest"
	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/ports"
)

// TestRunOfTheNodePoolAlone has one process run a pool, and another one that does not fit.
func TestRunOfTheNodePoolAlone(t *testing.T) {
	cluster := controlplane.BorrowFor(t)
	objects := clitest.WithDefinitions(t, cluster, "../../../manifests")
	secure, err := ports.Take()
	require.NoError(t, err)
	open, err := ports.Take()
	require.NoError(t, err)
	metrics, err := ports.TakeAddress()
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		ended <- cli.Execute(ctx, cli.NewRoot(NewCommand()), []string{
			"run", "--enable", "nodepool", "--kubeconfig", cluster.Kubeconfig(),
			"--secure-port", strconv.Itoa(secure), "--http-address", fmt.Sprintf("127.0.0.1:%d", open),
			"--metrics-address", metrics,
		}, strings.NewReader(""), &stderr, &stderr)
	}()
	clitest.Eventually(t, func() bool {
		select {
		case code := <-ended:
			require.Fail(t, "it has ended", "with code %d: %s", code, stderr.String())
		default:
		}
		return clitest.Status(t, open, "/readyz") == http.StatusOK
	})
	_, err = new(net.Dialer).DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", secure))
	require.Error(t, err, "the adapter's door is not open")

	simulated := v1alpha1.PoolProvider{Simulated: &v1alpha1.SimulatedProvider{}}
	works := &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: "works"},
		Spec: v1alpha1.WorkerPoolSpec{Min: 2, Max: 5, Provider: simulated}}
	require.NoError(t, objects.Create(t.Context(), works))
	clitest.Eventually(t, func() bool {
		list, err := cluster.Client().CoreV1().ConfigMaps("foresail-simulated").List(t.Context(),
			metav1.ListOptions{LabelSelector: "simulated.foresail.dev/pool=works"})
		require.NoError(t, err)
		return len(list.Items) == 2
	})
	clitest.Eventually(t, func() bool {
		require.NoError(t, objects.Get(t.Context(), client.ObjectKeyFromObject(works), works))
		return works.Status.Workers != nil && *works.Status.Workers == 2
	})

	asks := &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: "asks-nobody"},
		Spec: v1alpha1.WorkerPoolSpec{Max: 5, Provider: simulated}}
	asks.Spec.Signals = []v1alpha1.PoolSignal{{Name: "queue", Threshold: resource.MustParse("100"),
		Prometheus: &v1alpha1.SignalQuery{Query: "queue"}}}
	require.NoError(t, objects.Create(t.Context(), asks))
	clitest.Eventually(t, func() bool {
		require.NoError(t, objects.Get(t.Context(), client.ObjectKeyFromObject(asks), asks))
		c := meta.FindStatusCondition(asks.Status.Conditions, v1alpha1.ConditionHealthy)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == "InvalidSpec"
	})

	cancel()
	select {
	case code := <-ended:
		assert.Equal(t, cli.ExitDone, code, stderr.String())
	case <-time.After(time.Minute):
		require.Fail(t, "it does not end")
	}
}

func TestCostReportsAreMadeOfWhatAServerKnows(t *testing.T) {
	server := costtest.Serve(t)
	sources := &prometheusOptions{url: server.URL}
	sources.limits.MaxMemory = 8 << 20
	o := costReportOptions{every: 48 * time.Hour}
	reports, err := o.build(sources.url, sources.clients())
	require.NoError(t, err)
	assert.Equal(t, o.every, reports.Every)
	text, err := reports.Make(t.Context(), "workers", time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC))
	require.NoError(t, err)
	assert.Contains(t, text, "Worker pool workers, 2026-05-04 to 2026-05-06: 48.0 h of 48.0 h known. 192.0 worker hours, 144.0 desired, 48.0 idle.")
	_, err = reports.Make(t.Context(), "builders", time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC))
	require.ErrorIs(t, err, cost.ErrNoPool)

	none, err := (&costReportOptions{}).build("", nil)
	require.NoError(t, err)
	assert.Nil(t, none)
}
