package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/foresail/foresail/adapter/extender"
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

func newExplainPodCommand(k *cluster, now func() time.Time) *cobra.Command {
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
--metrics-allow-anonymous. A replica keeps its newest decisions, some 130,000 verdicts on nodes.`,
		Example: `  foresail explain pod checkout-7d9c5 -n shop
  foresail explain pod checkout-7d9c5 -n shop --all

  # Which nodes were filtered, and why?
  foresail explain pod checkout-7d9c5 -n shop -o json | jq -r '.filter.nodes[] | select(.filtered) | .name + ": " + .message'

  # A replica that runs outside of the cluster
  foresail explain pod checkout-7d9c5 -n shop --server https://foresail.example.com:8443`,
		Args: oneName("a Pod"),

		DisableFlagsInUseLine: true,
	}
	c.Flags().StringVarP(&k.namespace, "namespace", "n", "", "`namespace` of the Pod; empty is that of the kubeconfig")
	o.addFlags(c.Flags())
	c.Flags().BoolVar(&o.all, "all", false, "print every node, instead of the best and a few that were filtered")
	output := addOutputFlag(c, "table", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		return o.run(c, k, args[0], output.value, now())
	}
	return c
}

func (o *explainPodOptions) run(c *cobra.Command, k *cluster, name, output string, now time.Time) error {
	if err := o.validate(); err != nil {
		return err
	}
	namespace, err := k.namespaceOrDefault()
	if err != nil {
		return err
	}
	e := podExplanation{Namespace: namespace, Name: name, At: now}
	config, client, err := k.clientset()
	if err != nil && !o.anonymous() {
		return err
	}
	if client != nil {
		e.Pod, e.PodError = podStateOf(c.Context(), client, types.NamespacedName{Namespace: namespace, Name: name})
	}
	asked, err := o.ask(c.Context(), config, client, &e)
	if err != nil {
		return err
	}
	for _, replica := range slices.Sorted(maps.Keys(e.Unreachable)) {
		fmt.Fprintf(c.ErrOrStderr(), "Warning: a newer answer may be missing: %s\n", e.Unreachable[replica])
	}
	if e.Filter == nil && e.Prioritize == nil {
		return e.unanswered(c.ErrOrStderr(), asked)
	}
	if output == "json" {
		return printJSON(c.OutOrStdout(), e)
	}
	return e.table(c.OutOrStdout(), o.all)
}

// namespaceOrDefault returns the namespace that is given, or that of the kubeconfig.
func (k *cluster) namespaceOrDefault() (string, error) {
	if k.namespace != "" {
		return k.namespace, nil
	}
	namespace, _, err := k.loader().Namespace()
	if err != nil {
		return "", badFlag("namespace", `""`, "given where the kubeconfig has none")
	}
	return namespace, nil
}

// clientset returns a client for what every cluster has.
func (k *cluster) clientset() (*rest.Config, kubernetes.Interface, error) {
	config, _, err := k.connect()
	if err != nil {
		return nil, nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	return config, client, nil
}

// podExplanation is what explain pod tells, as JSON too.
type podExplanation struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	At        time.Time `json:"at"` // when it was asked
	Pod       *podState `json:"pod,omitempty"`
	PodError  string    `json:"podError,omitempty"` // why there is no Pod
	// FilteredBy and ScoredBy are the replicas that answered the scheduler.
	FilteredBy string                   `json:"filteredBy,omitempty"`
	Filter     *extender.FilterDecision `json:"filter,omitempty"`
	ScoredBy   string                   `json:"scoredBy,omitempty"`
	Prioritize *extender.ScoreDecision  `json:"prioritize,omitempty"` // nil also if one node was left
	// Unreachable says of each replica that could not be asked why, by its name. Theirs may have been the newest answer.
	Unreachable map[string]string `json:"unreachable,omitempty"`
}

// podState is what the cluster says of the pod.
type podState struct {
	UID       types.UID    `json:"uid"`
	Scheduler string       `json:"schedulerName"`
	Created   metav1.Time  `json:"creationTimestamp"`
	Node      string       `json:"node,omitempty"`        // "" as long as it is not bound
	Scheduled *metav1.Time `json:"scheduledAt,omitempty"` // when it was bound, or found no node
	Message   string       `json:"message,omitempty"`     // why it is not bound
}

// podStateOf reads the pod. What it says when it cannot is for people: there may be an answer all the same.
func podStateOf(ctx context.Context, client kubernetes.Interface, key types.NamespacedName) (*podState, string) {
	pod, err := client.CoreV1().Pods(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, "there is no such pod now"
	case err != nil:
		return nil, fmt.Sprintf("the pod cannot be read: %v", err)
	}
	s := &podState{UID: pod.UID, Scheduler: pod.Spec.SchedulerName, Created: pod.CreationTimestamp, Node: pod.Spec.NodeName}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			s.Scheduled, s.Message = &c.LastTransitionTime, c.Message
		}
	}
	return s, ""
}

// ask asks the replicas, all at the same time, and keeps the newest of what each verb was answered. It returns whom it asked.
func (o *explainPodOptions) ask(ctx context.Context, config *rest.Config, client kubernetes.Interface, e *podExplanation) (asked []string, err error) {
	path := extender.ExplainPath + e.Namespace + "/" + e.Name
	if o.server != "" {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		answer, err := o.askServer(ctx, client, path)
		if err != nil {
			return nil, fmt.Errorf("ask %s: %w", o.server, err)
		}
		e.take(o.server, answer)
		return []string{o.server}, nil
	}
	replicas, token, err := o.prepare(ctx, client)
	if err != nil {
		return nil, err
	}
	answers, failures := make([]extender.Explanation, len(replicas)), make([]error, len(replicas))
	var group sync.WaitGroup
	for i, r := range replicas {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, answerTimeout)
			defer cancel()
			pod := types.NamespacedName{Namespace: o.foresail, Name: r.name}
			answer, err := askPod(ctx, config, client, pod, r.port, path, token)
			if err != nil {
				failures[i] = fmt.Errorf("ask the pod %s: %w", pod, err)
				return
			}
			answers[i] = answer
		})
	}
	group.Wait()
	for i, r := range replicas {
		if failures[i] != nil {
			e.miss(r.name, failures[i])
			continue
		}
		asked = append(asked, r.name)
		e.take(r.name, answers[i])
	}
	if len(asked) == 0 {
		return nil, errors.Join(failures...)
	}
	return asked, nil
}

// prepare returns whom to ask, and a token that they answer.
func (o *explainPodOptions) prepare(ctx context.Context, client kubernetes.Interface) (replicas []replica, token string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if replicas, err = o.replicas(ctx, client); err != nil {
		return nil, "", err
	}
	token, err = o.token(ctx, client)
	return replicas, token, err
}

// askServer asks the one replica. It gets a token only over TLS, and once it has shown its certificate.
func (o *explainPodOptions) askServer(ctx context.Context, client kubernetes.Interface, path string) (answer extender.Explanation, err error) {
	transport, err := o.serverTransport()
	if err != nil {
		return answer, err
	}
	token := ""
	if !o.anonymous() {
		if token, err = o.token(ctx, client); err != nil {
			return answer, err
		}
	}
	return fetchAnswer(ctx, transport, strings.TrimSuffix(o.server, "/")+path, token)
}

// askPod asks a replica through the API server, which knows what pod it is: its certificate need not tell.
func askPod(ctx context.Context, config *rest.Config, client kubernetes.Interface, pod types.NamespacedName, port, path, token string) (answer extender.Explanation, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	address, err := podTunnel(ctx, config, client, pod.Namespace, pod.Name, port)
	if err != nil {
		return answer, err
	}
	return fetchAnswer(ctx, tunnelTransport(), "https://"+address+path, token)
}

// replicas are the pods that run the extender.
func (o *explainPodOptions) replicas(ctx context.Context, client kubernetes.Interface) ([]replica, error) {
	pods, err := client.CoreV1().Pods(o.foresail).List(ctx, metav1.ListOptions{LabelSelector: foresailPods})
	if err != nil {
		return nil, fmt.Errorf("find the pods of Foresail in namespace %s, for which the Role foresail-explain is: %w", o.foresail, err)
	}
	var found []replica
	for i := range pods.Items {
		pod := &pods.Items[i]
		if port := portOf(pod, metricsPort); pod.Status.Phase == corev1.PodRunning && portOf(pod, extenderPort) != "" && port != "" {
			found = append(found, replica{pod.Name, port})
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no pod in namespace %s runs the extender (%d of Foresail are there): "+
			"--foresail-namespace says where it runs, manifests/components/extender and manifests/overlays/extender run it, and --server asks one that is no pod", o.foresail, len(pods.Items))
	}
	return found, nil
}

// fetchAnswer reads an answer. It is empty if the replica has none.
func fetchAnswer(ctx context.Context, transport *http.Transport, address, token string) (answer extender.Explanation, err error) {
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

// take keeps what is newer than what there is.
func (e *podExplanation) take(from string, answer extender.Explanation) {
	if f := answer.Filter; f != nil && (e.Filter == nil || f.At.After(e.Filter.At)) {
		e.Filter, e.FilteredBy = f, from
	}
	if p := answer.Prioritize; p != nil && (e.Prioritize == nil || p.At.After(e.Prioritize.At)) {
		e.Prioritize, e.ScoredBy = p, from
	}
}

func (e *podExplanation) miss(replica string, why error) {
	if e.Unreachable == nil {
		e.Unreachable = map[string]string{}
	}
	e.Unreachable[replica] = why.Error()
}

// unanswered tells what is known without an answer, and what may be the reason that there is none.
func (e *podExplanation) unanswered(w io.Writer, asked []string) error {
	slices.Sort(asked)
	why := []string{"is the extender in the configuration of the scheduler (docs/extender.md)?"}
	switch {
	case e.Pod == nil:
		why = append(why, "and is the name right?")
	case e.Pod.Node != "":
		fmt.Fprintln(w, e.sentence())
		why = append(why, "or was that too long ago to be remembered, or before this replica started?")
	case e.Pod.Message != "":
		fmt.Fprintln(w, e.sentence())
		why = append(why, "The scheduler asks about nodes that fit by its own rules: there may be none.")
	}
	scheduler := ""
	if e.Pod != nil {
		scheduler = fmt.Sprintf(" by the scheduler %q, which its schedulerName says", e.Pod.Scheduler)
	}
	because := ""
	if e.PodError != "" {
		because = ", and " + e.PodError
	}
	return fmt.Errorf("no replica of Foresail (%s) was asked about the pod %s/%s lately%s%s: %s",
		strings.Join(asked, ", "), e.Namespace, e.Name, scheduler, because, strings.Join(why, " "))
}
