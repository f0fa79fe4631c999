package extender

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/foresail/foresail/adapter/scheduler/extender"
)

// probe asks an extender what it knows of nodes, for tests that wait until it knows it. It asks as
// a scheduler would, about a pod of a DaemonSet that does not exist: such a pod passes everywhere,
// and counts nowhere.
type probe struct {
	address string // of the extender: host:port
	explain string // the URL of the folder of explanations
	client  *http.Client
}

func newProbe(t *testing.T, address, root string) *probe {
	t.Helper()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(cluster.CA()))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return &probe{address: address, explain: root + extender.ExplainPath,
		client: &http.Client{Transport: transport, Timeout: 5 * time.Second}}
}

// ask returns the verdicts on nodes.
func (p *probe) ask(ctx context.Context, nodes []string) ([]extender.FilterNode, error) {
	return p.askAs(ctx, nodes, "")
}

// askAs is ask with a UID of the pod. As the watch never delivers such a pod, the extender looks for it.
func (p *probe) askAs(ctx context.Context, nodes []string, uid types.UID) ([]extender.FilterNode, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "probe", Namespace: "probe", UID: uid, OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet",
			Name: "probe", Controller: new(true)}},
	}}
	body, err := json.Marshal(extenderv1.ExtenderArgs{Pod: pod, NodeNames: &nodes})
	if err != nil {
		return nil, err
	}
	url := "https://" + p.address + extender.Prefix + "/filter"
	if err := p.do(ctx, http.MethodPost, url, body, &extenderv1.ExtenderFilterResult{}); err != nil {
		return nil, err
	}
	var e extender.Explanation
	if err := p.do(ctx, http.MethodGet, p.explain+"probe/probe", nil, &e); err != nil {
		return nil, err
	}
	if e.Filter == nil {
		return nil, fmt.Errorf("no decision: %+v", e)
	}
	return e.Filter.Nodes, nil
}

func (p *probe) do(ctx context.Context, method, url string, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into)
}

// untilKnown waits until an extender knows nodes so that a condition holds for each of them.
func (s *stage) untilKnown(p *probe, what string, nodes []string, holds func(n *extender.FilterNode) bool) {
	s.Helper()
	var last []extender.FilterNode
	var err error
	known := s.within(patience, func() bool {
		last, err = p.ask(s.Context(), nodes)
		return err == nil && len(last) == len(nodes) &&
			!slices.ContainsFunc(last, func(n extender.FilterNode) bool { return !holds(&n) })
	})
	if !known {
		text, _ := json.MarshalIndent(last, "", " ") // for people
		require.Failf(s, "not in time: "+what, "%v %s", err, text)
	}
}

// untilListed waits until an extender has heard of nodes and what they can allocate.
func (s *stage) untilListed(p *probe, nodes []string) {
	s.Helper()
	s.untilKnown(p, "nodes to be known", nodes, func(n *extender.FilterNode) bool {
		return n.Memory != nil && n.Memory.Allocatable > 0
	})
}

// untilPredicted waits until an extender has forecasts of nodes.
func (s *stage) untilPredicted(p *probe, nodes []string) {
	s.Helper()
	s.untilKnown(p, "nodes to be predicted", nodes, func(n *extender.FilterNode) bool {
		return n.CPU != nil && n.CPU.Predicted != nil && n.Memory != nil && n.Memory.Predicted != nil
	})
}
