// Package etcdseed writes objects directly to the etcd of an API server, without admission and
// validation. A hundred thousand objects take seconds, where requests would take minutes.
package etcdseed

import (
	"bytes"
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// changesPerTxn is how many objects are written or removed at once; etcd takes no more than 128.
const changesPerTxn = 100

// Writer writes to the etcd of an API server that keeps its objects under /registry, the default.
// It is for one goroutine.
type Writer struct {
	client  *clientv3.Client
	encoder runtime.Encoder
	pending []clientv3.Op
}

// Open connects to the etcd at a URL, which accepts clients without credentials.
func Open(url string) (*Writer, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}})
	if err != nil {
		return nil, fmt.Errorf("etcd at %s: %w", url, err)
	}
	return &Writer{client: client, encoder: protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)}, nil
}

// Object is an object of the API. Its TypeMeta must be set; objects that a client has read have none.
type Object interface {
	runtime.Object
	metav1.Object
}

// Put writes an object of a built-in resource such as "pods", with the next Flush at the latest.
func (w *Writer) Put(ctx context.Context, resource string, o Object) error {
	var encoded bytes.Buffer
	if err := w.encoder.Encode(o, &encoded); err != nil {
		return fmt.Errorf("encode %s %s/%s: %w", resource, o.GetNamespace(), o.GetName(), err)
	}
	return w.add(ctx, clientv3.OpPut(key(resource, o.GetNamespace(), o.GetName()), encoded.String()))
}

// Delete removes an object with the next Flush at the latest, without grace and whatever its finalizers are.
func (w *Writer) Delete(ctx context.Context, resource, namespace, name string) error {
	return w.add(ctx, clientv3.OpDelete(key(resource, namespace, name)))
}

func (w *Writer) add(ctx context.Context, change clientv3.Op) error {
	w.pending = append(w.pending, change)
	if len(w.pending) < changesPerTxn {
		return nil
	}
	return w.Flush(ctx)
}

// Flush writes what is pending. Objects that are written together share a resourceVersion, which
// watches do not expect: flush after each object where something watches them.
func (w *Writer) Flush(ctx context.Context) error {
	_, err := w.client.Txn(ctx).Then(w.pending...).Commit()
	w.pending = w.pending[:0]
	return err
}

// key returns where the API server keeps an object.
func key(resource, namespace, name string) string {
	if resource == "nodes" {
		resource = "minions" // the name that they had in the beginning
	}
	if namespace == "" {
		return fmt.Sprintf("/registry/%s/%s", resource, name)
	}
	return fmt.Sprintf("/registry/%s/%s/%s", resource, namespace, name)
}

// Close ends the connection. What has not been flushed is not written.
func (w *Writer) Close() error { return w.client.Close() }
