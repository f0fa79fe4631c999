package nodepool

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientkubernetes "k8s.io/client-go/kubernetes"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/simulated"
	"github.com/foresail/foresail/nodepool/state"
	"github.com/foresail/foresail/nodepool/state/kubernetes"
)

// inKubernetes keeps instances and journal in the API server.
type inKubernetes struct {
	stage *stage
	self  *simulated.Cloud // of nobody's process
}

func newInKubernetes(s *stage) cloud {
	c := &inKubernetes{stage: s}
	c.self = c.connect(s.client)
	return c
}

func (c *inKubernetes) connect(client clientkubernetes.Interface) *simulated.Cloud {
	return simulated.New(simulated.Options{
		Client: client, Pool: c.stage.name, Now: c.stage.clock.Now, Kubelet: true,
		Labels: map[string]string{stageLabel: c.stage.name},
		Spec:   v1alpha1.SimulatedProvider{Namespace: c.stage.name, JoinDelay: &metav1.Duration{Duration: joinDelay}},
	})
}

func (c *inKubernetes) provider(p *process) provider.Provider { return c.connect(p.client) }

func (c *inKubernetes) store(p *process) state.Store { return kubernetes.New(p.kubernetesREST()) }

func (c *inKubernetes) notices(p *process) provider.Notices {
	return simulatedNotices{c.connect(p.client)}
}

func (c *inKubernetes) step(ctx context.Context) ([]fleet.Instance, error) {
	if err := c.self.Step(ctx, c.stage.clock.Now()); err != nil {
		return nil, err
	}
	return c.all(ctx)
}

func (c *inKubernetes) all(ctx context.Context) ([]fleet.Instance, error) {
	objects, err := c.stage.client.CoreV1().ConfigMaps(c.stage.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []fleet.Instance
	for _, object := range objects.Items {
		data, ok := object.Data["instance"]
		if !ok {
			continue
		}
		i := fleet.Instance{ID: object.Name}
		if err := json.Unmarshal([]byte(data), &i); err != nil {
			return nil, fmt.Errorf("instance %s: %w", object.Name, err)
		}
		i.ProviderID = "simulated:///" + i.Zone + "/" + i.ID
		if i.State == "Terminated" {
			i.State = gone
		}
		out = append(out, i)
	}
	return out, nil
}

func (c *inKubernetes) interrupt(ctx context.Context, id string, after time.Duration) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, simulated.AnnotationInterrupt, after)
	_, err := c.stage.client.CoreV1().ConfigMaps(c.stage.name).Patch(ctx, id, types.MergePatchType, patch,
		metav1.PatchOptions{})
	return err
}

func (c *inKubernetes) strand(ctx context.Context, on bool) error {
	faults := c.stage.client.CoreV1().ConfigMaps(c.stage.name)
	if on {
		_, err := faults.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: simulated.FaultsName},
			Data:       map[string]string{simulated.FaultNeverJoin: "true"},
		}, metav1.CreateOptions{})
		return err
	}
	err := faults.Delete(ctx, simulated.FaultsName, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// simulatedNotices are the messages of a simulated cloud, without waiting.
type simulatedNotices struct{ *simulated.Cloud }

func (n simulatedNotices) Receive(ctx context.Context) ([]provider.Message, error) {
	return n.Messages(ctx)
}
