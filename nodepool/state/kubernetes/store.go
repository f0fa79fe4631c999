// Package kubernetes stores the journal of a pool in the status of its WorkerPool, so that a pool
// depends only on the cluster.
//
// The journal is one field of a status with several writers. A [Store] changes only status.journal.
// Other writers must not change that field: they patch their own fields (by a merge patch of the
// status subresource), and never update the whole status.
package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/state"
)

// Store keeps journals in status.journal of WorkerPools. It is safe for concurrent use.
type Store struct {
	client rest.Interface

	mu   sync.Mutex
	uids map[string]types.UID // of each pool when it was last loaded
}

var _ state.Store = (*Store)(nil)

// New returns a store with a client for the API server: any REST client, such as that of a
// discovery client.
func New(client rest.Interface) *Store {
	return &Store{client: client, uids: map[string]types.UID{}}
}

// Load reads the journal from the API server, bypassing all caches. It is an error if the
// WorkerPool does not exist.
func (s *Store) Load(ctx context.Context, pool string) (state.Record, error) {
	o, err := s.get(ctx, pool)
	if err != nil {
		return state.Record{}, fmt.Errorf("load the journal of WorkerPool %s: %w", pool, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uids[pool] = o.uid
	return o.record, nil
}

// Save writes the journal into the status of the WorkerPool that the last Load has read. It is an
// error if that has been deleted since, even if it was recreated. If another writer has changed the
// rest of the object meanwhile it tries again.
func (s *Store) Save(ctx context.Context, pool string, r state.Record) (state.Record, error) {
	for {
		written, err := s.trySave(ctx, pool, r)
		switch {
		case err == nil:
			return written, nil
		case apierrors.IsConflict(err) && ctx.Err() == nil:
			continue // nothing was written, and the next read shows whose change came first
		case isTooLarge(err):
			return state.Record{}, fmt.Errorf("save the journal of WorkerPool %s: %w: %w", pool, state.ErrTooLarge, err)
		default:
			return state.Record{}, fmt.Errorf("save the journal of WorkerPool %s: %w", pool, err)
		}
	}
}

// isTooLarge reports whether the API server or etcd has refused an object because of its size: the
// API server accepts requests of 3 MiB and etcd, by default, of 1.5 MiB. The errors of etcd arrive
// as text.
func isTooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) ||
		strings.Contains(err.Error(), "request is too large") || strings.Contains(err.Error(), "message larger than max")
}

// trySave writes the journal unless the object changes between the read and the write, which is a
// conflict of the API.
func (s *Store) trySave(ctx context.Context, pool string, r state.Record) (state.Record, error) {
	o, err := s.get(ctx, pool)
	if err != nil {
		return state.Record{}, err
	}
	if err := s.check(pool, o.uid); err != nil {
		return state.Record{}, err
	}
	if o.record.Version != r.Version {
		return state.Record{}, state.ErrConflict
	}
	r.Version++
	if err := o.setJournal(r); err != nil {
		return state.Record{}, err
	}
	body, err := json.Marshal(o.fields)
	if err != nil {
		return state.Record{}, err
	}
	return r, s.request(s.client.Put(), pool, "/status").SetHeader("Content-Type",
		"application/json").Body(body).Do(ctx).Error()
}

func (s *Store) check(pool string, uid types.UID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.uids[pool]; ok && known != uid {
		return fmt.Errorf("its uid is %s and was %s: it has been deleted and recreated since it was loaded", uid, known)
	}
	return nil
}

func (s *Store) get(ctx context.Context, pool string) (*object, error) {
	data, err := s.request(s.client.Get(), pool, "").Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	return decode(data)
}

// request returns a request without retries: a client that retries after a late answer would find
// its own write, and take it for that of another writer.
func (s *Store) request(r *rest.Request, pool, subresource string) *rest.Request {
	path := "/apis/" + v1alpha1.GroupVersion.String() + "/workerpools/"
	return r.AbsPath(path, pool, subresource).SetHeader("Accept", "application/json").MaxRetries(0)
}
