package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/test/env/workload"
)

// ServePages answers at the metrics ports of the pods that a label selector chooses in a namespace,
// those that run by now, until ctx ends. They have no [WorkloadLabel].
func (s *Stack) ServePages(ctx context.Context, namespace, selector string, page http.Handler) error {
	pods, err := s.Cluster.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		if err := servePage(ctx, &pods.Items[i], page); err != nil {
			return fmt.Errorf("serve metrics of the pod %s/%s: %w", namespace, pods.Items[i].Name, err)
		}
	}
	return nil
}

func servePage(ctx context.Context, pod *corev1.Pod, page http.Handler) error {
	address, err := workload.MetricsAddress(pod)
	if err != nil {
		return err
	}
	if !address.Addr().IsLoopback() {
		return fmt.Errorf("address %s: must be a loopback address", address)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address.String())
	if err != nil {
		return err
	}
	server := &http.Server{Handler: page, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // nobody is waiting any more
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // a listener that has been opened fails only if it is closed
		}
	}()
	return nil
}
