package controlplane

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// LentEnv is the environment variable with the folder of an API server that a parent process lends to tests.
const LentEnv = "FORESAIL_TEST_API_SERVER"

// The files of a lent API server in its folder.
const (
	lentFile   = "lent.json"
	borrowLock = "borrow.lock"
)

// lent is the content of lentFile.
type lent struct {
	// Slot is the number of the slot.
	Slot int `json:"slot"`
	// Revision is that of etcd when only the API server itself had written to it.
	Revision int64 `json:"revision"`
	// Groups are the API groups that were served then.
	Groups []string `json:"groups"`
}

// apiOnly returns the options of an API server for unit tests: no controller makes service
// accounts, and none takes the taint off a new node.
func apiOnly(progress io.Writer) Options {
	return Options{
		APIOnly: true, Progress: progress,
		ExtraArgs: map[Component][]string{APIServer: {"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"}},
	}
}

// Lend starts an API server, runs a function with the variable to set for test processes, as
// name=value, and stops the API server. The processes borrow it in turn. The context of the
// function ends if the API server does.
func Lend(ctx context.Context, progress io.Writer, use func(ctx context.Context, variable string) error) (err error) {
	c, err := Start(ctx, apiOnly(progress))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if err := c.describe(ctx); err != nil {
		return err
	}
	path, release := c.constantPath()
	defer release()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-c.Done():
			cancel(c.Err())
		case <-ctx.Done():
		}
	}()
	// Whether the cluster broke is asked before it is stopped.
	return errors.Join(use(ctx, LentEnv+"="+path), c.Err())
}

// constantPath links the folder of the cluster to a path that is the same in every run with the
// same Kubernetes from this checkout: the go command reuses the result of a test only if the test
// would see the same variables, and does not check files outside the module. Where another lender
// has that path, it returns the folder itself.
func (c *Cluster) constantPath() (path string, release func()) {
	keep := func() {}
	root, err := Root()
	if err != nil {
		return c.dir, keep
	}
	key := sha256.Sum256([]byte(root + "\n" + c.options.Binaries.Dir))
	path = filepath.Join(os.TempDir(), fmt.Sprintf("foresail-lent-%x", key[:8]))
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return c.dir, keep
	}
	closeLock := func() { _ = lock.Close() }
	if tryLock(lock) != nil {
		closeLock()
		return c.dir, keep
	}
	_ = os.Remove(path) // left behind by a lender that was killed
	if err := os.Symlink(c.dir, path); err != nil {
		closeLock()
		return c.dir, keep
	}
	return path, func() {
		_ = os.Remove(path)
		closeLock()
	}
}

// describe writes lentFile once the API server has created its own objects.
func (c *Cluster) describe(ctx context.Context) error {
	const quiet = 500 * time.Millisecond
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not within %s", startTimeout))
	defer cancel()
	var l lent
	since := time.Now()
	err := c.poll(ctx, "the API server to have created its own objects", func(ctx context.Context) error {
		state, err := c.etcd().read(ctx, 0)
		if err != nil {
			return err
		}
		if newest := state.newest(); newest != l.Revision {
			l.Revision, since = newest, time.Now()
		}
		if time.Since(since) < quiet {
			return errors.New("it is still creating some")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if l.Groups, err = c.servedGroups(); err != nil {
		return err
	}
	l.Slot = c.slot.number
	content, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return os.WriteFile(c.file(lentFile), content, 0o600)
}

func (c *Cluster) servedGroups() ([]string, error) {
	list, err := c.client.Discovery().ServerGroups()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, group := range list.Groups {
		names = append(names, group.Name)
	}
	return names, nil
}

// Borrow returns an API server as it is after its start: without objects of other tests, without
// definitions of custom resources, and without controllers. It is the caller's alone until release.
// It is the one of [LentEnv], if a parent process lends one, or else a new one.
func Borrow(ctx context.Context, progress io.Writer) (c *Cluster, release func() error, err error) {
	dir := os.Getenv(LentEnv)
	if dir == "" {
		c, err := Start(ctx, apiOnly(progress))
		if err != nil {
			return nil, nil, err
		}
		return c, c.Stop, nil
	}
	lock, err := os.OpenFile(filepath.Join(dir, borrowLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("%s=%q: %w: want the folder of an API server that is lent", LentEnv, dir, err)
	}
	if err := waitForLock(ctx, lock, newReporter(progress,
		"waiting for the API server that other tests use")); err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not within %s", startTimeout))
	defer cancel()
	c, err = attach(dir)
	if err == nil {
		err = c.reset(ctx)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("the lent API server in %s: %w", dir, err), lock.Close())
	}
	return c, lock.Close, nil
}

// BorrowFor borrows an API server until a test ends. A test that has one must not borrow another one.
func BorrowFor(t testing.TB) *Cluster {
	t.Helper()
	c, release, err := Borrow(context.WithoutCancel(t.Context()), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := release(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// attach returns the cluster in a folder of another process. It is not stopped from here.
func attach(dir string) (*Cluster, error) {
	c := &Cluster{dir: dir, borrowed: true, done: make(chan struct{})}
	l, err := c.lent()
	if err != nil {
		return nil, err
	}
	c.slot = &slot{number: l.Slot}
	c.podCIDR = c.slot.podCIDR()
	if c.ca, err = readAuthority(dir, "ca"); err != nil {
		return nil, err
	}
	return c, c.makeClients()
}

func (c *Cluster) lent() (l lent, err error) {
	content, err := os.ReadFile(c.file(lentFile))
	if err != nil {
		return lent{}, err
	}
	return l, json.Unmarshal(content, &l)
}

// reset brings etcd back to how it was before the first test, and waits until the API server has
// dropped the definitions of custom resources. Its caches of roles and namespaces follow within
// milliseconds.
func (c *Cluster) reset(ctx context.Context) error {
	l, err := c.lent()
	if err != nil {
		return err
	}
	before, err := c.etcd().read(ctx, l.Revision)
	if err != nil {
		return err
	}
	now, err := c.etcd().read(ctx, 0)
	if err != nil {
		return err
	}
	if err := c.etcd().apply(ctx, changes(now, before)); err != nil {
		return err
	}
	return c.poll(ctx, "the API server to have forgotten the definitions of other tests", func(context.Context) error {
		served, err := c.servedGroups()
		if err != nil {
			return err
		}
		for _, group := range served {
			if !slices.Contains(l.Groups, group) {
				return fmt.Errorf("it serves %s", group)
			}
		}
		return nil
	})
}

// etcdState is the content of etcd by key.
type etcdState map[string]etcdValue

type etcdValue struct {
	Key      []byte `json:"key"`
	Value    []byte `json:"value"`
	Revision int64  `json:"mod_revision,string"` // of the last change
}

// newest returns the revision of the newest value.
func (s etcdState) newest() int64 {
	revision := int64(0)
	for _, v := range s {
		revision = max(revision, v.Revision)
	}
	return revision
}

// ownedByServer reports whether the API server itself changes or deletes an object: the Lease that
// it renews, and the APIServices that it deletes once it has dropped a definition, which is what
// reset waits for.
func ownedByServer(v etcdValue) bool {
	return bytes.HasPrefix(v.Key, []byte("/registry/leases/kube-system/apiserver-")) ||
		bytes.HasPrefix(v.Key, []byte("/registry/apiregistration.k8s.io/apiservices/")) &&
			bytes.Contains(v.Value, []byte("kube-aggregator.kubernetes.io/automanaged"))
}

// changes returns the operations, in the form of etcd's JSON API, that turn one state into another.
func changes(from, to etcdState) []any {
	var out []any
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if _, kept := to[key]; !kept && !ownedByServer(from[key]) {
			out = append(out, map[string]any{"request_delete_range": map[string][]byte{"key": []byte(key)}})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(to)) {
		if v := to[key]; !ownedByServer(v) && !bytes.Equal(from[key].Value, v.Value) {
			out = append(out, map[string]any{"request_put": map[string][]byte{"key": []byte(key), "value": v.Value}})
		}
	}
	return out
}

// etcdClient speaks etcd's JSON API, as its Go client would be linked into every test binary.
type etcdClient struct{ url string }

func (c *Cluster) etcd() etcdClient { return etcdClient{c.EtcdURL()} }

// read returns what is below /registry, at a revision or, for 0, now.
func (e etcdClient) read(ctx context.Context, revision int64) (etcdState, error) {
	var answer struct {
		KVs []etcdValue `json:"kvs"`
	}
	request := map[string]any{"key": []byte("/registry/"), "range_end": []byte("/registry0"), "revision": revision}
	if err := e.call(ctx, "/v3/kv/range", request, &answer); err != nil {
		return nil, err
	}
	state := make(etcdState, len(answer.KVs))
	for _, v := range answer.KVs {
		state[string(v.Key)] = v
	}
	return state, nil
}

// apply executes operations. etcd accepts no more than 128 in one transaction.
func (e etcdClient) apply(ctx context.Context, operations []any) error {
	for batch := range slices.Chunk(operations, 100) {
		if err := e.call(ctx, "/v3/kv/txn", map[string]any{"success": batch}, &struct{}{}); err != nil {
			return err
		}
	}
	return nil
}

func (e etcdClient) call(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(response.Body, 1024))
		return fmt.Errorf("etcd: %s: %s: %s", path, response.Status, why)
	}
	return json.NewDecoder(response.Body).Decode(out)
}
