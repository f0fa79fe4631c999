package nodejs

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/workload"
)

// stopDeadline is how long a Node.js process has to end by itself.
const stopDeadline = 5 * time.Second

// program is how the server of an example is started.
type program struct {
	node      string
	arguments []string
	env       []string // beside its addresses
}

// processes runs a program for every running pod, on the pod's own address. Its handlers are called
// one at a time.
type processes struct {
	t       *testing.T
	program program
	dir     string // of the logs
	running map[types.UID]*controlplane.Process
	ended   sync.WaitGroup
}

// serverJS returns how the example nodejs is started, with the Node.js of this machine.
func serverJS(t *testing.T) program {
	t.Helper()
	node, err := exec.LookPath("node")
	require.NoError(t, err, "this test runs node: install Node.js 18.2 or later, on Debian: apt-get install nodejs")
	return program{node: node, arguments: []string{exampleFile(t, "nodejs", "server.js")},
		env: []string{"DRAIN_MS=500"}}
}

// runProcesses keeps a process for each running pod that a selector chooses, until the test is over.
func runProcesses(t *testing.T, client kubernetes.Interface, namespace, selector string, of program) {
	t.Helper()
	p := &processes{t: t, program: of, dir: t.TempDir(), running: map[types.UID]*controlplane.Process{}}
	informer, err := workload.NewPodInformer(client, namespace, selector)
	require.NoError(t, err)
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(pod any) { p.sync(pod.(*corev1.Pod)) },
		UpdateFunc: func(_, pod any) { p.sync(pod.(*corev1.Pod)) },
		DeleteFunc: func(gone any) {
			if last, ok := gone.(cache.DeletedFinalStateUnknown); ok {
				gone = last.Obj
			}
			p.stop(gone.(*corev1.Pod).UID)
		},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { informer.RunWithContext(ctx) })
	t.Cleanup(func() {
		cancel()
		watching.Wait() // no handler runs any more
		for uid := range p.running {
			p.stop(uid)
		}
		p.ended.Wait()
	})
}

// sync starts or stops the process of a pod as its state demands.
func (p *processes) sync(pod *corev1.Pod) {
	desired := pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" && pod.DeletionTimestamp == nil
	_, runs := p.running[pod.UID]
	switch {
	case desired && !runs:
		process, err := p.start(pod)
		if assert.NoError(p.t, err) {
			p.running[pod.UID] = process
		}
	case !desired && runs:
		p.stop(pod.UID)
	}
}

func (p *processes) start(pod *corev1.Pod) (*controlplane.Process, error) {
	app, err := workload.AppAddress(pod)
	if err != nil {
		return nil, err
	}
	metrics, err := workload.MetricsAddress(pod)
	if err != nil {
		return nil, err
	}
	env := append([]string{"HOST=" + app.Addr().String(), fmt.Sprint("PORT=", app.Port()),
		fmt.Sprint("METRICS_PORT=", metrics.Port())}, p.program.env...)
	return controlplane.StartProcess(pod.Name, p.program.node, filepath.Join(p.dir, pod.Name+".log"), p.dir,
		p.program.arguments, env...)
}

// stop ends the process of a pod, if there is one, as a kubelet would. One that has ended before is
// a failure.
func (p *processes) stop(uid types.UID) {
	process, runs := p.running[uid]
	if !runs {
		return
	}
	delete(p.running, uid)
	select {
	case <-process.Ended():
		p.t.Error(process.Failure())
	default:
		p.ended.Go(func() { assert.NoError(p.t, process.Stop(stopDeadline)) })
	}
}
