//go:build long

package keda_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/suite/permissions/rbac"
)

// answer is what a server of external metrics answers.
type answer struct {
	status      int
	contentType string
	body        string
}

func ask(t require.TestingT, client *http.Client, url, accept string) answer {
	got, err := get(context.Background(), client, url, accept)
	require.NoError(t, err)
	return got
}

func get(ctx context.Context, client *http.Client, url, accept string) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Accept", accept)
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header.Get("Content-Type"), string(body)}, err
}

// Foresail in front of KEDA's adapter answers what is KEDA's as KEDA does, byte for byte, and what
// is its own itself.
func TestForwardedReadsAreThoseOfKEDA(t *testing.T) {
	a := newApp(t, "forwarded", 2.5, nil)
	a.becomesActive()
	require.NoError(t, foresail.Apply(t.Context(), shared.stack.Cluster, "components/forward/rbac.yaml"))
	front, err := shared.stack.StartAdapter(t.Context(), "front", "--forward-url="+shared.keda.AdapterURL(),
		"--forward-ca-file="+shared.tls.ca)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("not within a minute"))
	defer cancel()
	require.NoError(t, front.WaitReady(ctx))
	config, err := shared.stack.Cluster.RESTConfigFor("reader", "system:masters")
	require.NoError(t, err)
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	own, foreign := "https://localhost:"+strconv.Itoa(front.SecurePort), shared.keda.AdapterURL()
	const metrics = "/apis/external.metrics.k8s.io/v1beta1/namespaces/forwarded/"
	for _, c := range []struct {
		what, path string
		status     int
	}{
		{"a value", metrics + "s0-predicted_load_total?labelSelector=scaledobject.keda.sh%2Fname%3Dapp", http.StatusOK},
		{"an unknown metric", metrics + "s9-unknown?labelSelector=scaledobject.keda.sh%2Fname%3Dapp", 0},
		{"no selector", metrics + "s0-predicted_load_total", 0},
	} {
		for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf,application/json"} {
			a.eventually(30*time.Second, c.what, func(t *assert.CollectT) { // a value has the second at which it was read
				direct := ask(t, client, foreign+c.path, accept)
				assert.Equal(t, direct, ask(t, client, own+c.path, accept))
				if c.status != 0 {
					assert.Equal(t, c.status, direct.status, direct.body)
				}
			})
		}
	}
	a.eventually(30*time.Second, "what is Foresail's", func(t *assert.CollectT) {
		got := ask(t, client, own+metrics+"predicted_load_total?labelSelector=predictedmetric%3Dapp",
			"application/json")
		assert.Equal(t, http.StatusOK, got.status, got.body)
		assert.Contains(t, got.body, `"value":"2800m"`)
	})
	listed := ask(t, client, own+"/apis/external.metrics.k8s.io/v1beta1", "application/json")
	assert.Contains(t, listed.body, "predicted_load_total")
	assert.Contains(t, listed.body, "externalmetrics", "the one name that KEDA lists")
	require.NoError(t, rbac.Check("test/suite/keda", shared.stack.Cluster, true),
		"KEDA asks the cluster what Foresail may read")
}
