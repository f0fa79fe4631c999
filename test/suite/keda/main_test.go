//go:build long

package keda_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/ports"
	"github.com/foresail/foresail/test/env/stack"
	"github.com/foresail/foresail/test/suite/keda"
	"github.com/foresail/foresail/test/suite/permissions/rbac"
)

// host is the name of the Service of the manifests.
const host = "foresail-keda.foresail-system.svc"

// suite is what all tests share: a control plane, KEDA, and two replicas of Foresail behind a
// headless Service.
type suite struct {
	context.Context
	stack    *stack.Stack
	keda     *keda.KEDA
	replicas []*stack.Adapter
	dns      *resolver
	address  string   // that ScaledObjects name
	scalers  []string // those of the replicas, at which KEDA asks
	servers  string   // file with the Prometheus servers that may be queried
	gateway  string   // that one of them
	tls      struct{ cert, key, ca string }
}

var shared suite

var oldest = flag.Bool("oldest", false, "run the oldest release that Foresail supports")

func release() keda.Release {
	if *oldest {
		return keda.Oldest
	}
	return keda.Current
}

// hasTolerance reports whether the CRD of ScaledObjects has the tolerance of an HPA, which came
// with KEDA 2.18.
func hasTolerance() bool { return release() != keda.Oldest }

var releaseFuncs = template.FuncMap{"tolerance": hasTolerance}

func TestMain(m *testing.M) {
	flag.Parse() // KEDA starts before m.Run, which parses otherwise
	controlplane.Main(func(ctx context.Context) (code int, err error) {
		shared.Context = ctx
		var resolving sync.WaitGroup
		defer func() {
			err = errors.Join(err, shared.stop())
			resolving.Wait()
		}()
		if err := shared.start(); err != nil {
			return 1, err
		}
		resolving.Go(func() { _ = shared.dns.serve() }) // a client without an answer fails by itself
		return m.Run(), nil
	})
}

func (s *suite) start() (err error) {
	binaries, err := keda.Build(s, release(), os.Stderr)
	if err != nil {
		return err
	}
	if s.stack, err = stack.Start(s, stack.Options{Progress: os.Stderr, ReadyDelay: 4 * time.Second, Seed: 1,
		TimeScale: 5, AuditPolicy: rbac.Policy}); err != nil {
		return err
	}
	if s.keda, err = keda.Start(s, s.stack.Cluster, binaries); err != nil {
		return err
	}
	if s.dns, err = newResolver(); err != nil {
		return err
	}
	if err := s.secure(); err != nil {
		return err
	}
	if err := s.list(); err != nil {
		return err
	}
	return s.startReplicas()
}

// secure makes the certificates of Foresail and of KEDA, and the objects by which KEDA finds its own.
func (s *suite) secure() error {
	cluster := s.stack.Cluster
	var err error
	if s.tls.cert, s.tls.key, err = cluster.ServingCertificate(host, "localhost"); err != nil {
		return err
	}
	s.tls.ca = filepath.Join(filepath.Dir(s.tls.cert), "ca.crt")
	if err := os.WriteFile(s.tls.ca, cluster.CA(), 0o600); err != nil {
		return err
	}
	client, err := cluster.RESTConfigFor("keda-operator")
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "foresail-keda-client"},
		Data:       map[string][]byte{"ca.crt": cluster.CA(), "tls.crt": client.CertData, "tls.key": client.KeyData},
	}
	if _, err := cluster.Client().CoreV1().Secrets(keda.Namespace).Create(s, secret,
		metav1.CreateOptions{}); err != nil {
		return err
	}
	authentication, err := foresail.ReadManifest("examples/keda-certificates/authentication.yaml")
	if err != nil {
		return err
	}
	_, err = cluster.Apply(s, authentication)
	return err
}

// list names the one Prometheus server that PredictedMetrics may query.
func (s *suite) list() error {
	port, err := ports.Take()
	if err != nil {
		return err
	}
	s.gateway = ports.Loopback(port)
	s.servers = filepath.Join(s.stack.Cluster.Dir(), "servers.yaml")
	return os.WriteFile(s.servers, fmt.Appendf(nil, "servers: [{address: %q}]\n", "http://"+s.gateway), 0o600)
}

// startReplicas starts two replicas, each at an address of its own with the same port, as pods have.
func (s *suite) startReplicas() error {
	port, err := ports.Take()
	if err != nil {
		return err
	}
	s.address = "dns://" + s.dns.address() + "/" + net.JoinHostPort(host, strconv.Itoa(port))
	var ready []netip.Addr
	for i := range 2 {
		at := netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + i)})
		s.scalers = append(s.scalers, netip.AddrPortFrom(at, uint16(port)).String())
		replica, err := s.stack.StartAdapter(s, fmt.Sprint("foresail-", i), "--keda-address="+s.scalers[i],
			"--keda-cert-dir="+filepath.Dir(s.tls.cert), "--prometheus-config-file="+s.servers)
		if err != nil {
			return err
		}
		s.replicas, ready = append(s.replicas, replica), append(ready, at)
	}
	s.dns.set(ready...)
	for _, replica := range s.replicas {
		ctx, cancel := context.WithTimeoutCause(s, time.Minute, errors.New("not within a minute"))
		err := replica.WaitReady(ctx)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *suite) stop() error {
	var errs []error
	for _, replica := range s.replicas {
		errs = append(errs, replica.Stop())
	}
	if s.keda != nil {
		errs = append(errs, s.keda.Stop())
	}
	if s.dns != nil {
		errs = append(errs, s.dns.close())
	}
	if s.stack != nil {
		errs = append(errs, s.stack.Close())
	}
	return errors.Join(errs...)
}
