// Callextender calls a scheduler extender as kube-scheduler does, with kube-scheduler's own client,
// and reports in JSON how long the calls took. It schedules nothing.
//
// For each pod it calls filter with a run of nodes, and prioritize with those that passed. The next
// pod's run begins where the last one ended, as the scheduler's samples do. Between the calls it
// does nothing: what the scheduler computes itself is not in the figures.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func main() {
	var o call
	flag.StringVar(&o.config, "config", "", "file of a KubeSchedulerConfiguration with one extender")
	flag.StringVar(&o.pod, "pod", "", "file of a Pod in JSON; each pod is like it but for name and UID")
	flag.StringVar(&o.nodes, "nodes", "", "file with the names of all nodes, one in a line")
	flag.IntVar(&o.names, "names", 500, "how many nodes a pod is asked about")
	flag.IntVar(&o.pods, "pods", 1000, "how many pods to measure")
	flag.IntVar(&o.warm, "warm", 50, "how many pods to begin with that are not measured")
	flag.DurationVar(&o.pause, "pause", 0, "how long to wait between two pods")
	flag.Parse()
	result, err := o.run()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "callextender:", err)
		os.Exit(1)
	}
}

// call is what to call and how often.
type call struct {
	config, pod, nodes string
	names, pods, warm  int
	pause              time.Duration
}

// result is what the calls took, and what they answered.
type result struct {
	Pods       int    `json:"pods"`
	Passed     int    `json:"passed"` // nodes, over all pods
	Filter     spread `json:"filter"`
	Prioritize spread `json:"prioritize"`
	Both       spread `json:"both"`
}

// spread is how times are spread, in nanoseconds.
type spread struct {
	P50 time.Duration `json:"p50"`
	P90 time.Duration `json:"p90"`
	P99 time.Duration `json:"p99"`
	Max time.Duration `json:"max"`
}

func (c call) run() (*result, error) {
	extender, err := c.extender()
	if err != nil {
		return nil, err
	}
	pod, err := c.template()
	if err != nil {
		return nil, err
	}
	nodes, err := c.infos()
	if err != nil {
		return nil, err
	}
	out := &result{Pods: c.pods}
	var filter, prioritize, both []time.Duration
	for i := range c.warm + c.pods {
		p := pod.DeepCopy()
		p.Name = fmt.Sprintf("%s-%d", pod.Name, i)
		p.UID = types.UID(fmt.Sprintf("%s-%d", pod.UID, i))
		begun := time.Now()
		passed, _, _, err := extender.Filter(p, sample(nodes, i*c.names, c.names))
		if err != nil {
			return nil, fmt.Errorf("filter, pod %d: %w", i, err)
		}
		filtered := time.Now()
		scores, _, err := extender.Prioritize(p, passed)
		if err != nil {
			return nil, fmt.Errorf("prioritize, pod %d: %w", i, err)
		}
		ended := time.Now()
		if len(*scores) != len(passed) {
			return nil, fmt.Errorf("prioritize, pod %d: %d scores of %d nodes", i, len(*scores), len(passed))
		}
		if i >= c.warm {
			out.Passed += len(passed)
			filter, prioritize, both = append(filter, filtered.Sub(begun)), append(prioritize,
				ended.Sub(filtered)), append(both, ended.Sub(begun))
		}
		time.Sleep(c.pause)
	}
	out.Filter, out.Prioritize, out.Both = spreadOf(filter), spreadOf(prioritize), spreadOf(both)
	return out, nil
}

func (c call) extender() (fwk.Extender, error) {
	config, err := options.LoadConfigFromFile(klog.Background(), c.config)
	if err != nil {
		return nil, err
	}
	if len(config.Extenders) != 1 {
		return nil, fmt.Errorf("%s: %d extenders: want one", c.config, len(config.Extenders))
	}
	return scheduler.NewHTTPExtender(&config.Extenders[0])
}

func (c call) template() (*v1.Pod, error) {
	data, err := os.ReadFile(c.pod)
	if err != nil {
		return nil, err
	}
	pod := &v1.Pod{}
	if err := json.Unmarshal(data, pod); err != nil {
		return nil, fmt.Errorf("%s: %w", c.pod, err)
	}
	return pod, nil
}

func (c call) infos() ([]fwk.NodeInfo, error) {
	data, err := os.ReadFile(c.nodes)
	if err != nil {
		return nil, err
	}
	var out []fwk.NodeInfo
	for _, name := range strings.Fields(string(data)) {
		info := framework.NewNodeInfo()
		info.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		out = append(out, info)
	}
	if len(out) < c.names {
		return nil, fmt.Errorf("%s: %d nodes: want %d at least", c.nodes, len(out), c.names)
	}
	return out, nil
}

// sample returns n nodes from the i-th on, around the end.
func sample(nodes []fwk.NodeInfo, i, n int) []fwk.NodeInfo {
	out := make([]fwk.NodeInfo, 0, n)
	for k := range n {
		out = append(out, nodes[(i+k)%len(nodes)])
	}
	return out
}

func spreadOf(times []time.Duration) spread {
	if len(times) == 0 {
		return spread{}
	}
	slices.Sort(times)
	at := func(share float64) time.Duration { return times[int(share*float64(len(times)-1))] }
	return spread{P50: at(0.5), P90: at(0.9), P99: at(0.99), Max: times[len(times)-1]}
}
