package bench

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

// putsPerTxn is how many objects are written at once; etcd takes no more than 128.
const putsPerTxn = 100

// vault writes objects where the API server keeps them, as it would encode them: past admission and validation, and so in
// seconds where requests would take minutes.
type vault struct {
	client  *clientv3.Client
	encoder runtime.Encoder
	pending []clientv3.Op
}

func openVault(url string) (*vault, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}})
	if err != nil {
		return nil, fmt.Errorf("etcd at %s: %w", url, err)
	}
	return &vault{client: client, encoder: protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)}, nil
}

// object is what the API server keeps.
type object interface {
	runtime.Object
	metav1.Object
}

// put writes an object, sooner or later: at the latest when the vault is closed.
func (v *vault) put(ctx context.Context, resource string, o object) error {
	var encoded bytes.Buffer
	if err := v.encoder.Encode(o, &encoded); err != nil {
		return fmt.Errorf("encode %s %s/%s: %w", resource, o.GetNamespace(), o.GetName(), err)
	}
	key := fmt.Sprintf("/registry/%s/%s/%s", resource, o.GetNamespace(), o.GetName())
	v.pending = append(v.pending, clientv3.OpPut(key, encoded.String()))
	if len(v.pending) < putsPerTxn {
		return nil
	}
	return v.flush(ctx)
}

func (v *vault) flush(ctx context.Context) error {
	_, err := v.client.Txn(ctx).Then(v.pending...).Commit()
	v.pending = v.pending[:0]
	return err
}

func (v *vault) close() error { return v.client.Close() }
