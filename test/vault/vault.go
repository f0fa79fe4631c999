// Package vault writes objects straight to where an API server keeps them: past admission and validation, and so in
// seconds where requests would take minutes. It is for clusters of tests that begin with a hundred thousand objects.
package vault

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

// Vault is the etcd of an API server that keeps its objects under /registry, as is the default. It is for one goroutine.
type Vault struct {
	client  *clientv3.Client
	encoder runtime.Encoder
	pending []clientv3.Op
}

// Open returns the vault of the etcd at a URL, which takes clients without credentials.
func Open(url string) (*Vault, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}})
	if err != nil {
		return nil, fmt.Errorf("etcd at %s: %w", url, err)
	}
	return &Vault{client: client, encoder: protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)}, nil
}

// Object is what the API server keeps. Its TypeMeta has to be set, as it is in no object that a client has read.
type Object interface {
	runtime.Object
	metav1.Object
}

// Put writes an object of a resource of the API's own, such as "pods", encoded as the API server does it. It is written
// with the next Flush at the latest.
func (v *Vault) Put(ctx context.Context, resource string, o Object) error {
	var encoded bytes.Buffer
	if err := v.encoder.Encode(o, &encoded); err != nil {
		return fmt.Errorf("encode %s %s/%s: %w", resource, o.GetNamespace(), o.GetName(), err)
	}
	return v.add(ctx, clientv3.OpPut(key(resource, o.GetNamespace(), o.GetName()), encoded.String()))
}

// Delete removes an object with the next Flush at the latest, without grace and whatever its finalizers are.
func (v *Vault) Delete(ctx context.Context, resource, namespace, name string) error {
	return v.add(ctx, clientv3.OpDelete(key(resource, namespace, name)))
}

func (v *Vault) add(ctx context.Context, change clientv3.Op) error {
	v.pending = append(v.pending, change)
	if len(v.pending) < changesPerTxn {
		return nil
	}
	return v.Flush(ctx)
}

// Flush does what has been asked for and is not yet done. Objects that are written together have the same
// resourceVersion, which those who watch them do not expect: where somebody does, flush after each.
func (v *Vault) Flush(ctx context.Context) error {
	_, err := v.client.Txn(ctx).Then(v.pending...).Commit()
	v.pending = v.pending[:0]
	return err
}

// key is where the API server keeps an object.
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
func (v *Vault) Close() error { return v.client.Close() }
