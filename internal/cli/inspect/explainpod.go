package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/scheduler/extender"
	"github.com/foresail/foresail/adapter/scheduler/extender/podview"
	"github.com/foresail/foresail/internal/cli"
)

const (
	// foresailPods selects the pods that may run the extender, as the manifests name them.
	foresailPods = "app.kubernetes.io/name in (foresail, foresail-extender)"
	// extenderPort is what the manifests call the port.
	extenderPort = "extender"
	// explainAccount is the ServiceAccount that replicas answer.
	explainAccount = "foresail-explain"
)

// explainPodOptions are the flags of explain pod.
type explainPodOptions struct {
	replicaAccess
	all bool
}

func newExplainPodCommand(k *cli.Connection, now func() time.Time) *cobra.Command {
	o := &explainPodOptions{replicaAccess: replicaAccess{account: explainAccount}}
	c := &cobra.Command{
		Use:     "pod NAME [--namespace NAMESPACE] [--all] [--output table|json]",
		Aliases: []string{"pods", "po"},
		Short:   "Explain the scheduler extender's part in the placement of a pod",
		Long: `Explain pod asks each replica of Foresail that runs the extender for its last decision on the pod,
and prints the newest: the nodes that it filtered with their reasons, and the scores of the others.
All figures are as of that decision.

A score is round(10 * pack(U) * c * w). U is the larger share of CPU and memory that the node
would use at the horizon: what is PREDICTED, what ASSUMED pods will use beyond the newest sample, and
what this POD counts as, OF what can be allocated. pack(U) rises up to --extender-pack-target and
falls above. c is 0 for a node that is about to be removed. w rises to 1 while a node warms up.
Where nothing is predicted, the requests of the node's pods count instead.

The scheduler adds these scores to those of its own plugins, so the pod may run on another node
than the best one here.

The command reads the pod, and reaches the replicas through the API server, as kubectl port-forward
does. They answer the ServiceAccount foresail-explain, for which it asks for a token of ten minutes.
It needs the right to get the pod, and the Role foresail-explain. With --server it asks one replica
at its --metrics-address: over HTTPS with such a token too, over HTTP one that was started with
--allow-anonymous=metrics. A replica keeps its newest decisions, some 130,000 verdicts on nodes.`,
		Example: `  foresail explain pod checkout-7d9c5 -n shop
  foresail explain pod checkout-7d9c5 -n shop --all

  # Which nodes were filtered, and why?
  foresail explain pod checkout-7d9c5 -n shop -o json | jq -r '.filter.nodes[] | select(.filtered) | .name + ": " + .message'

  # A replica that runs outside of the cluster
  foresail explain pod checkout-7d9c5 -n shop --server https://foresail.example.com:8443`,
		Args: cli.OneName(cli.APod),

		DisableFlagsInUseLine: true,
	}
	c.Flags().StringVarP(&k.Namespace, "namespace", "n", "", "`namespace` of the Pod; empty is that of the kubeconfig")
	o.addFlags(c.Flags())
	c.Flags().BoolVar(&o.all, "all", false, "print every node, instead of the best and a few that were filtered")
	output := cli.AddOutputFlag(c, "table", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		return o.run(c, k, args[0], output.String(), now)
	}
	return c
}

func (o *explainPodOptions) run(c *cobra.Command, k *cli.Connection, name, output string, now func() time.Time) error {
	if err := o.validate(); err != nil {
		return err
	}
	namespace, err := k.NamespaceOrDefault()
	if err != nil {
		return err
	}
	x := &podExplainer{replicaAccess: &o.replicaAccess, now: now}
	if x.config, x.client, err = k.Clientset(); err != nil && !o.anonymous() {
		return err
	}
	e, err := x.explain(c.Context(), types.NamespacedName{Namespace: namespace, Name: name})
	podview.Warn(c.ErrOrStderr(), e)
	if others := x.namespacesWith(c.Context(), e); len(others) > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "There is no pod %q in namespace %s; %s\n", name, namespace,
			cli.InNamespaces(others))
	}
	if err != nil {
		if e.Pod != nil {
			fmt.Fprintln(c.ErrOrStderr(), e.Sentence())
		}
		return err
	}
	if output == "json" {
		return cli.PrintJSON(c.OutOrStdout(), e)
	}
	return podview.Table(c.OutOrStdout(), e, o.all)
}

// podExplainer asks about pods, with the rights of the user: the cluster, and the replicas of the
// extender. It is safe for concurrent use.
type podExplainer struct {
	*replicaAccess
	config *rest.Config
	client kubernetes.Interface // nil: there is no cluster, which an anonymous replica does without
	now    func() time.Time

	held heldToken
}

// explain returns what is known of a pod. With an error it is what is known nevertheless, and has no answer.
func (x *podExplainer) explain(ctx context.Context, pod types.NamespacedName) (*podview.Explanation, error) {
	e, err := podview.New(pod, x.now())
	if err != nil {
		return e, cli.Unusable(err)
	}
	if x.client != nil {
		e.Read(ctx, x.client)
	}
	if err := x.ask(ctx, e); err != nil {
		x.held.forget() // in case that is why
		return e, err
	}
	return e, e.Unanswered()
}

// namespacesWith returns the namespaces that have a pod that is absent from its own, as far as the
// user may list them.
func (x *podExplainer) namespacesWith(ctx context.Context, e *podview.Explanation) []string {
	if x.client == nil || !e.Absent {
		return nil
	}
	pods, err := x.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + e.Name})
	if err != nil {
		return nil
	}
	return cli.EachObject(pods, client.Object.GetNamespace)
}

// ask asks the replicas, all at the same time. It is an error if none could be asked.
func (x *podExplainer) ask(ctx context.Context, e *podview.Explanation) error {
	path := extender.ExplainPath + e.Namespace + "/" + e.Name
	if x.server != "" {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		answer, err := x.askServer(ctx, path)
		if err != nil {
			return fmt.Errorf("ask %s: %w", x.server, err)
		}
		e.Take(x.server, answer)
		return nil
	}
	replicas, token, err := x.prepare(ctx)
	if err != nil {
		return err
	}
	answers, failures := make([]extender.Explanation, len(replicas)), make([]error, len(replicas))
	var group sync.WaitGroup
	for i, r := range replicas {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, answerTimeout)
			defer cancel()
			answer, err := x.askPod(ctx, r, path, token)
			if err != nil {
				failures[i] = fmt.Errorf("ask the pod %s/%s: %w", x.foresail, r.name, err)
				return
			}
			answers[i] = answer
		})
	}
	group.Wait()
	if !slices.Contains(failures, nil) {
		return errors.Join(failures...)
	}
	for i, r := range replicas {
		if failures[i] != nil {
			e.Miss(r.name, failures[i])
			continue
		}
		e.Take(r.name, answers[i])
	}
	return nil
}

// prepare returns whom to ask, and a token that they answer.
func (x *podExplainer) prepare(ctx context.Context) (replicas []replica, token string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if replicas, err = x.replicas(ctx); err != nil {
		return nil, "", err
	}
	token, err = x.held.get(ctx, x.replicaAccess, x.client)
	return replicas, token, err
}

// askServer asks the one replica. It gets a token only over TLS, and once it has shown its certificate.
func (x *podExplainer) askServer(ctx context.Context, path string) (answer extender.Explanation, err error) {
	transport, err := x.serverTransport()
	if err != nil {
		return answer, err
	}
	token, err := x.held.get(ctx, x.replicaAccess, x.client)
	if err != nil {
		return answer, err
	}
	return fetchAnswer(ctx, transport, strings.TrimSuffix(x.server, "/")+path, token)
}

// askPod asks a replica through the API server, which knows what pod it is: its certificate need not tell.
func (x *podExplainer) askPod(ctx context.Context, r replica, path, token string) (answer extender.Explanation,
	err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tunnel, err := openTunnel(ctx, x.config, x.client, x.foresail, r.name, r.port)
	if err != nil {
		return answer, err
	}
	answer, err = fetchAnswer(ctx, tunnelTransport(), "https://"+tunnel.address+path, token)
	return answer, tunnel.explain(err)
}

// replicas are the pods that run the extender.
func (x *podExplainer) replicas(ctx context.Context) ([]replica, error) {
	pods, err := x.client.CoreV1().Pods(x.foresail).List(ctx, metav1.ListOptions{LabelSelector: foresailPods})
	if err != nil {
		return nil, fmt.Errorf("find the pods of Foresail in namespace %s, for which the Role foresail-explain is: %w",
			x.foresail, err)
	}
	var found []replica
	for i := range pods.Items {
		pod := &pods.Items[i]
		if port := portOf(pod, metricsPort); pod.Status.Phase == corev1.PodRunning && portOf(pod, extenderPort) != "" &&
			port != "" {
			found = append(found, replica{pod.Name, port})
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no pod in namespace %s runs the extender (%d of Foresail are there): "+
			"--foresail-namespace says where it runs, manifests/components/extender and manifests/overlays/extender run it, and --server asks one that is no pod", x.foresail, len(pods.Items))
	}
	return found, nil
}

// fetchAnswer reads an answer. It is empty if the replica has none.
func fetchAnswer(ctx context.Context, transport *http.Transport, address, token string) (answer extender.Explanation,
	err error) {
	defer transport.CloseIdleConnections()
	a, err := fetchFrom(ctx, transport, address, token)
	switch {
	case err != nil:
		return answer, err
	case a.code == http.StatusNotFound:
		return answer, nil
	case a.code != http.StatusOK:
		return answer, a.failure()
	}
	if err := json.Unmarshal(a.body, &answer); err != nil {
		return answer, fmt.Errorf("the answer is none of the extender's: %w", err)
	}
	return answer, nil
}
