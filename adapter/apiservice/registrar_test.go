package apiservice

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// validity has a renewal every forty minutes, and an overlap of ten.
const validity = time.Hour

var (
	external = ExternalMetrics("foresail-apiservice", false)
	taking   = ExternalMetrics("foresail-apiservice", true)

	service = Service{Namespace: "foresail-system", Name: "foresail", Port: 443}
	role    = &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "foresail-apiservice", UID: "role-1"}}
)

// fixture is a cluster with replicas of Foresail.
type fixture struct {
	*testing.T
	client client.WithWatch
	ctx    context.Context
	ended  sync.WaitGroup
}

// play runs a test in virtual time. All replicas have ended when it returns.
func play(t *testing.T, objects []client.Object, test func(*fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		scheme, err := newScheme()
		require.NoError(t, err)
		copies := []client.Object{role.DeepCopy()}
		for _, o := range objects {
			copies = append(copies, o.DeepCopyObject().(client.Object))
		}
		ctx, cancel := context.WithCancel(t.Context())
		f := &fixture{T: t, ctx: ctx, client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(copies...).Build()}
		defer f.ended.Wait()
		defer cancel()
		test(f)
	})
}

// replica is a running Registrar.
type replica struct {
	*Registrar
	events   *events.FakeRecorder
	registry *prometheus.Registry
	stop     context.CancelFunc
}

// start runs a replica until it has nothing more to do at the time.
func (f *fixture) start(change func(*Options)) *replica {
	f.Helper()
	r := &replica{events: events.NewFakeRecorder(100), registry: prometheus.NewPedanticRegistry()}
	o := Options{
		Client: f.client, Events: r.events, Registerer: r.registry, Now: time.Now,
		Answers: func() error { return nil },
		APIs:    []API{external}, Service: service, Secret: "foresail-apiservice-ca", Validity: validity,
	}
	if change != nil {
		change(&o)
	}
	var err error
	r.Registrar, err = New(o)
	require.NoError(f, err)
	ctx, cancel := context.WithCancel(f.ctx)
	r.stop = cancel
	f.ended.Go(func() { assert.NoError(f, r.Run(ctx)) })
	synctest.Wait()
	return r
}

// after lets time pass.
func (f *fixture) after(span time.Duration) {
	time.Sleep(span)
	synctest.Wait()
}

// registered returns the APIService, nil if there is none.
func (f *fixture) registered() *apiregistrationv1.APIService {
	f.Helper()
	var s apiregistrationv1.APIService
	err := f.client.Get(f.ctx, client.ObjectKey{Name: external.Name()}, &s)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(f, err)
	return &s
}

func (f *fixture) bundle() []byte {
	f.Helper()
	s := f.registered()
	require.NotNil(f, s)
	return s.Spec.CABundle
}

func (f *fixture) secret() *corev1.Secret {
	f.Helper()
	var s corev1.Secret
	require.NoError(f, f.client.Get(f.ctx,
		client.ObjectKey{Namespace: service.Namespace, Name: "foresail-apiservice-ca"}, &s))
	return &s
}

// authority returns what a Secret has, which must be good.
func (f *fixture) authority() *authority {
	f.Helper()
	a, err := parseAuthority(f.secret().Data, time.Now())
	require.NoError(f, err)
	return a
}

// verify checks a replica as an API server with a caBundle does.
func verify(r *replica, bundle []byte) error {
	chain, key := r.Certificate().CurrentCertKeyContent()
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots,
		DNSName: "foresail.foresail-system.svc", CurrentTime: time.Now()})
	return err
}

// gauge returns the value of foresail_apiservice_registered for external metrics, and the Service that it names.
func (r *replica) gauge(t require.TestingT) map[string]float64 {
	families, err := r.registry.Gather()
	require.NoError(t, err)
	found := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "foresail_apiservice_registered" && m.GetLabel()[0].GetValue() == external.Name() {
				found[m.GetLabel()[1].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	return found
}

// happened returns the events so far.
func (r *replica) happened() (all []string) {
	for {
		select {
		case e := <-r.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

func anothers(change func(*apiregistrationv1.APIService)) *apiregistrationv1.APIService {
	s := &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: external.Name(), Labels: map[string]string{managedBy: "Helm"}},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: external.Group, Version: external.Version, GroupPriorityMinimum: 100, VersionPriority: 100,
			CABundle: []byte("of another"),
			Service: &apiregistrationv1.ServiceReference{Namespace: "keda",
				Name: "keda-operator-metrics-apiserver", Port: new(int32(443))},
		},
	}
	if change != nil {
		change(s)
	}
	return s
}

func TestFreeAPIIsRegistered(t *testing.T) {
	play(t, nil, func(f *fixture) {
		r := f.start(nil)
		require.NoError(f, r.Ready())
		s := f.registered()
		require.NotNil(f, s)
		assert.Equal(f, &apiregistrationv1.ServiceReference{Namespace: "foresail-system", Name: "foresail",
			Port: new(int32(443))}, s.Spec.Service)
		assert.Equal(f, "external.metrics.k8s.io", s.Spec.Group)
		assert.Equal(f, "v1beta1", s.Spec.Version)
		assert.Equal(f, "foresail", s.Labels["app.kubernetes.io/managed-by"])
		assert.Equal(f, []metav1.OwnerReference{{
			APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "foresail-apiservice", UID: "role-1",
		}}, s.OwnerReferences)
		assert.False(f, s.Spec.InsecureSkipTLSVerify)
		require.NoError(f, verify(r, s.Spec.CABundle))
		assert.Equal(f, map[string]float64{"foresail-system/foresail": 1}, r.gauge(f))
		assert.Equal(f, []string{"Normal Registered v1beta1.external.metrics.k8s.io leads to foresail-system/foresail"},
			r.happened())

		for name, change := range map[string]func(*apiregistrationv1.APIService){
			"the port":     func(s *apiregistrationv1.APIService) { s.Spec.Service.Port = new(int32(1)) },
			"the caBundle": func(s *apiregistrationv1.APIService) { s.Spec.CABundle = []byte("garbage") },
			"the check": func(s *apiregistrationv1.APIService) {
				s.Spec.CABundle, s.Spec.InsecureSkipTLSVerify = nil, true
			},
			"the owner":      func(s *apiregistrationv1.APIService) { s.OwnerReferences = nil },
			"the priorities": func(s *apiregistrationv1.APIService) { s.Spec.VersionPriority = 1 },
		} {
			changed := f.registered()
			before := changed.DeepCopy()
			change(changed)
			require.NoError(f, f.client.Update(f.ctx, changed))
			f.after(pause)
			after := f.registered()
			after.ResourceVersion = before.ResourceVersion
			assert.Equal(f, before, after, name)
		}
		assert.Empty(f, r.happened())
		assert.Zero(f, testutil.ToFloat64(r.metrics.failures))
	})
}

func TestAPIOfAnotherIsLeftAloneUntilItIsFree(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*apiregistrationv1.APIService)
		holder string
	}{
		"another Service": {nil, "keda/keda-operator-metrics-apiserver"},
		"one of another namespace": {func(s *apiregistrationv1.APIService) { s.Spec.Service.Name = service.Name },
			"keda/foresail"},
		"the API server itself": {func(s *apiregistrationv1.APIService) {
			s.Spec.Service, s.Spec.CABundle = nil, nil
		}, "kube-apiserver"},
		"one that says it is Foresail's": {func(s *apiregistrationv1.APIService) { s.Labels[managedBy] = foresail },
			"keda/keda-operator-metrics-apiserver"},
	} {
		t.Run(name, func(t *testing.T) {
			theirs := anothers(c.change)
			play(t, []client.Object{theirs}, func(f *fixture) {
				r := f.start(nil)
				before := f.registered()
				f.after(time.Hour)
				assert.Equal(f, before, f.registered())
				assert.NoError(f, r.Ready(), "it forecasts all the same")
				assert.Equal(f, map[string]float64{c.holder: 0}, r.gauge(f))
				happened := r.happened()
				require.Len(f, happened, 1, "it is said once")
				assert.Contains(f, happened[0],
					"Warning HeldByAnother v1beta1.external.metrics.k8s.io leads to "+c.holder+":")
				assert.Contains(f, happened[0], "--apiservice=take-over")

				require.NoError(f, f.client.Delete(f.ctx, before))
				f.after(pause)
				require.NotNil(f, f.registered())
				assert.NoError(f, verify(r, f.bundle()))
				assert.Equal(f, map[string]float64{"foresail-system/foresail": 1}, r.gauge(f))
			})
		})
	}
}

func TestAPIThatIsLostIsReported(t *testing.T) {
	play(t, nil, func(f *fixture) {
		r := f.start(nil)
		assert.Equal(f, map[string]float64{"foresail-system/foresail": 1}, r.gauge(f))
		r.happened()
		taken := f.registered()
		taken.Spec.Service = anothers(nil).Spec.Service
		require.NoError(f, f.client.Update(f.ctx, taken))
		f.after(pause)
		assert.Equal(f, map[string]float64{"keda/keda-operator-metrics-apiserver": 0}, r.gauge(f))
		happened := r.happened()
		require.Len(f, happened, 1)
		assert.Contains(f, happened[0],
			"Warning HeldByAnother v1beta1.external.metrics.k8s.io leads to keda/keda-operator-metrics-apiserver:")
		f.after(time.Hour)
		assert.Equal(f, "keda", f.registered().Spec.Service.Namespace, "it is not taken back")
		assert.Empty(f, r.happened(), "it is said once")
	})
}

func TestAPIOfAnotherIsTakenOverByFlag(t *testing.T) {
	theirs := anothers(func(s *apiregistrationv1.APIService) {
		s.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "keda/keda", "note": "stays"}
		s.Spec.VersionPriority = 200
	})
	play(t, []client.Object{theirs}, func(f *fixture) {
		r := f.start(func(o *Options) { o.APIs = []API{taking} })
		s := f.registered()
		assert.Equal(f, service.Name, s.Spec.Service.Name)
		assert.EqualValues(f, 100, s.Spec.VersionPriority)
		assert.Equal(f, map[string]string{"note": "stays"}, s.Annotations,
			"cert-manager would write the other's authority")
		assert.NotEmpty(f, s.OwnerReferences)
		assert.NoError(f, verify(r, s.Spec.CABundle))
		assert.Equal(f, map[string]float64{"foresail-system/foresail": 1}, r.gauge(f))
	})
}

// Until this replica has forecasts, HPAs are better served by what they have.
func TestAPIIsTakenOnceThereAreForecasts(t *testing.T) {
	ours := anothers(func(s *apiregistrationv1.APIService) {
		s.Labels[managedBy] = foresail
		s.Annotations = map[string]string{injectCAFrom: "foresail-system/foresail"}
		s.Spec.Service = &apiregistrationv1.ServiceReference{Namespace: service.Namespace,
			Name: service.Name, Port: new(int32(443))}
	})
	for name, present := range map[string]*apiregistrationv1.APIService{"from another server": anothers(nil),
		"from cert-manager": ours} {
		t.Run(name, func(t *testing.T) {
			play(t, []client.Object{present}, func(f *fixture) {
				var warm atomic.Bool
				r := f.start(func(o *Options) {
					o.APIs = []API{taking}
					o.Answers = func() error {
						if warm.Load() {
							return nil
						}
						return errors.New("2 PredictedMetrics wait for their first data")
					}
				})
				before := f.registered()
				f.after(time.Hour)
				assert.Equal(f, before, f.registered())
				assert.ErrorContains(f, r.Ready(), "2 PredictedMetrics wait")
				assert.Zero(f, testutil.ToFloat64(r.metrics.failures), "it is no failure")

				warm.Store(true)
				f.after(retryAfter)
				assert.NoError(f, r.Ready())
				assert.NoError(f, verify(r, f.bundle()))
			})
		})
	}
}

// During an update from one authority to another, replicas of both run side by side. The newest
// decides, and those that are left in the end have the last word: after a rollback, or if one of
// before has started again.
func TestReplicasDoNotFightOverWhoWritesTheBundle(t *testing.T) {
	certManager := func(o *Options) { o.Secret, o.InjectCAFrom = "", "foresail-system/foresail" }
	const injected = injectCAFrom + "=foresail-system/foresail"
	for name, c := range map[string]struct {
		before, after   func(*Options)
		atFirst, update string
	}{
		"to cert-manager":   {nil, certManager, "", injected},
		"from cert-manager": {certManager, nil, injected, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for name, end := range map[string]func(f *fixture, before, after *replica) (want string){
				"it ends":           func(_ *fixture, before, _ *replica) string { before.stop(); return c.update },
				"it is rolled back": func(_ *fixture, _, after *replica) string { after.stop(); return c.atFirst },
				"one of the previous ones starts again": func(f *fixture, before, _ *replica) string {
					before.stop()
					f.start(c.before).stop()
					return c.update
				},
			} {
				t.Run(name, func(t *testing.T) {
					play(t, nil, func(f *fixture) {
						before := f.start(c.before)
						f.after(time.Minute)
						after := f.start(c.after)
						decided := f.registered()
						assert.Equal(f, c.update, injection(decided))
						f.after(takeoverDelay - time.Minute)
						assert.Equal(f, decided.ResourceVersion, f.registered().ResourceVersion,
							"no one changes it back")
						want := end(f, before, after)
						f.after(takeoverDelay + 2*resync)
						assert.Equal(f, want, injection(f.registered()))
					})
				})
			}
		})
	}
}

// The replicas of the previous ones serve certificates of cert-manager's authority until the update has replaced them.
func TestAuthorityOfBeforeIsTrustedDuringAnUpdate(t *testing.T) {
	theirs := selfSigned(t, func(c *x509.Certificate) {
		c.Subject.CommonName, c.NotAfter = "cert-manager", time.Now().Add(1e6*time.Hour)
	})["tls.crt"]
	present := anothers(func(s *apiregistrationv1.APIService) {
		s.Labels[managedBy] = foresail
		s.Annotations = map[string]string{injectCAFrom: "foresail-system/foresail"}
		s.Spec.Service = &apiregistrationv1.ServiceReference{Namespace: service.Namespace,
			Name: service.Name, Port: new(int32(443))}
		s.Spec.CABundle = theirs
	})
	play(t, []client.Object{present}, func(f *fixture) {
		r := f.start(nil)
		assert.NoError(f, verify(r, f.bundle()))
		f.after(maxOverlap - resync)
		assert.Contains(f, string(f.bundle()), string(theirs))
		f.after(2 * resync)
		assert.NotContains(f, string(f.bundle()), string(theirs))
		assert.NoError(f, verify(r, f.bundle()))
	})
}

// An authority of Foresail's name that the Secret has never had is not trusted once earlier replicas are gone.
func TestAForeignAuthorityOfTheSameNameIsNotTrusted(t *testing.T) {
	foreign, err := newAuthority(time.Now(), 1e6*time.Hour)
	require.NoError(t, err)
	data, err := foreign.data()
	require.NoError(t, err)
	theirs := string(data["tls.crt"])
	present := anothers(func(s *apiregistrationv1.APIService) {
		s.Labels[managedBy] = foresail
		s.Spec.Service = &apiregistrationv1.ServiceReference{Namespace: service.Namespace,
			Name: service.Name, Port: new(int32(443))}
		s.Spec.CABundle = data["tls.crt"]
	})
	play(t, []client.Object{present}, func(f *fixture) {
		r := f.start(nil)
		f.after(maxOverlap - resync)
		assert.Contains(f, string(f.bundle()), theirs)
		f.after(2 * resync)
		assert.NotContains(f, string(f.bundle()), theirs)
		assert.NoError(f, verify(r, f.bundle()))
	})
}

// An object that someone renders keeps all but its caBundle, so that two controllers do not change it in turn.
func TestRenderedAPIServiceGetsTheBundleAlone(t *testing.T) {
	rendered := anothers(func(s *apiregistrationv1.APIService) {
		s.Labels = map[string]string{managedBy: "argocd"}
		s.Spec.Service = &apiregistrationv1.ServiceReference{Namespace: service.Namespace,
			Name: service.Name, Port: new(int32(8443))}
		s.Spec.VersionPriority, s.Spec.CABundle, s.Spec.InsecureSkipTLSVerify = 30, nil, true
	})
	play(t, []client.Object{rendered}, func(f *fixture) {
		r := f.start(nil)
		s := f.registered()
		assert.NoError(f, verify(r, s.Spec.CABundle))
		want := rendered.DeepCopy()
		want.ResourceVersion, want.Spec.CABundle, want.Spec.InsecureSkipTLSVerify = s.ResourceVersion, s.Spec.CABundle, false
		assert.Equal(f, want.ObjectMeta, s.ObjectMeta)
		assert.Equal(f, want.Spec, s.Spec)
	})
}

// given is a replica whose certificate comes from files.
func given(o *Options) { o.Secret = "" }

func TestGivenCertificatesAreLeftAlone(t *testing.T) {
	ours := &apiregistrationv1.ServiceReference{Namespace: service.Namespace, Name: service.Name, Port: new(int32(443))}
	for name, c := range map[string]struct {
		present *apiregistrationv1.APIService
		change  func(*Options)
	}{
		"from files":        {anothers(func(s *apiregistrationv1.APIService) { s.Spec.Service = ours }), given},
		"from files, taken": {anothers(nil), func(o *Options) { o.Secret, o.APIs = "", []API{taking} }},
		"cert-manager's": {anothers(func(s *apiregistrationv1.APIService) {
			s.Spec.Service, s.Annotations = ours, map[string]string{injectCAFrom: "foresail-system/foresail"}
		}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, []client.Object{c.present}, func(f *fixture) {
				r := f.start(c.change)
				assert.NoError(f, r.Ready())
				f.after(time.Hour)
				s := f.registered()
				want := c.present.DeepCopy()
				want.ResourceVersion = "999"
				assert.Equal(f, want, s)
			})
		})
	}
	t.Run("none exists", func(t *testing.T) {
		play(t, nil, func(f *fixture) {
			r := f.start(given)
			assert.Nil(f, r.Certificate())
			assert.NoError(f, r.Ready())
			f.after(time.Hour)
			assert.Nil(f, f.registered(), "no one could verify the certificate")
			assert.Equal(f, map[string]float64{"": 0}, r.gauge(f))
		})
	})
}

func TestCertManagerIsAskedForTheBundle(t *testing.T) {
	play(t, nil, func(f *fixture) {
		f.start(nil).stop() // Foresail's own authority came before
		r := f.start(func(o *Options) { o.Secret, o.InjectCAFrom = "", "foresail-system/foresail" })
		s := f.registered()
		assert.Equal(f, map[string]string{"cert-manager.io/inject-ca-from": "foresail-system/foresail"}, s.Annotations)
		s.Spec.CABundle = []byte("of cert-manager")
		require.NoError(f, f.client.Update(f.ctx, s))
		f.after(time.Hour)
		assert.Equal(f, s, f.registered())
		r.stop()
		own := f.start(nil)
		assert.NoError(f, verify(own, f.bundle()), "and back again")
	})
}

// TestRotation reads both replicas every half minute, as API servers that learned of the caBundle
// at once, or eight minutes ago, while the authority is replaced five times and others start in
// between.
func TestRotation(t *testing.T) {
	play(t, nil, func(f *fixture) {
		replicas := []*replica{f.start(nil), f.start(nil)}
		const lag = int(8 * time.Minute / (30 * time.Second))
		bundles := [][]byte{f.bundle()}
		authorities := map[string]bool{}
		for step := range int(220 * time.Minute / (30 * time.Second)) {
			f.after(30 * time.Second)
			bundles = append(bundles, f.bundle())
			authorities[f.authority().cert.SerialNumber.String()] = true
			for i, r := range replicas {
				require.NoError(f, verify(r, bundles[len(bundles)-1]), "replica %d", i)
				require.NoError(f, verify(r, bundles[max(0, len(bundles)-1-lag)]),
					"replica %d, for an API server that lags", i)
			}
			if step%10 == 0 {
				third := f.start(nil)
				require.NoError(f, third.Ready())
				require.NoError(f, verify(third, bundles[len(bundles)-1]), "a replica that starts")
				third.stop()
			}
			certs, err := cert.ParseCertsPEM(bundles[len(bundles)-1])
			require.NoError(f, err)
			require.LessOrEqual(f, len(certs), 2)
		}
		assert.Len(f, authorities, 6, "the first, and five that followed")
		for _, r := range replicas {
			assert.Zero(f, testutil.ToFloat64(r.metrics.failures))
			assert.Equal(f, float64(r.certificates.servingCA.cert.NotAfter.Unix()),
				testutil.ToFloat64(r.metrics.expiration))
		}
	})
}

// selfSigned is a certificate with its key, as a Secret holds it.
func selfSigned(t *testing.T, change func(*x509.Certificate)) map[string][]byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template, err := newTemplate(authorityName, time.Now(), time.Now().Add(validity))
	require.NoError(t, err)
	template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	data, err := (&authority{cert: parsed, key: key}).data()
	require.NoError(t, err)
	return data
}

// TestSecretIsMended has the Secret spoilt under two running replicas, and found so by one that starts.
func TestSecretIsMended(t *testing.T) {
	for name, spoil := range map[string]func(*testing.T, *corev1.Secret){
		"deleted":           nil,
		"emptied":           func(_ *testing.T, s *corev1.Secret) { s.Data = nil },
		"garbage":           func(_ *testing.T, s *corev1.Secret) { s.Data["tls.crt"] = []byte("garbage") },
		"garbage for a key": func(_ *testing.T, s *corev1.Secret) { s.Data["tls.key"] = []byte("garbage") },
		"a public key": func(t *testing.T, s *corev1.Secret) {
			key, err := keyutil.ParsePrivateKeyPEM(s.Data["tls.key"])
			require.NoError(t, err)
			der, err := x509.MarshalPKIXPublicKey(&key.(*ecdsa.PrivateKey).PublicKey)
			require.NoError(t, err)
			s.Data["tls.key"] = fmt.Appendf(nil, "-----BEGIN PUBLIC KEY-----\n%x\n-----END PUBLIC KEY-----\n", der)
		},
		"the key of another": func(t *testing.T, s *corev1.Secret) {
			s.Data["tls.key"] = selfSigned(t, func(*x509.Certificate) {})["tls.key"]
		},
		"expired": func(t *testing.T, s *corev1.Secret) {
			s.Data = selfSigned(t, func(c *x509.Certificate) { c.NotAfter = time.Now() })
		},
		"not valid yet": func(t *testing.T, s *corev1.Secret) {
			s.Data = selfSigned(t, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) })
		},
		"no authority": func(t *testing.T, s *corev1.Secret) {
			s.Data = selfSigned(t, func(c *x509.Certificate) { c.IsCA = false })
		},
		"an authority for something else": func(t *testing.T, s *corev1.Secret) {
			s.Data = selfSigned(t, func(c *x509.Certificate) { c.Subject.CommonName = "etcd-ca" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, nil, func(f *fixture) {
				replicas := []*replica{f.start(nil), f.start(nil)}
				first := f.authority()
				f.after(time.Minute)
				secret := f.secret()
				if spoil == nil {
					require.NoError(f, f.client.Delete(f.ctx, secret))
				} else {
					spoil(f.T, secret)
					require.NoError(f, f.client.Update(f.ctx, secret))
				}
				replicas = append(replicas, f.start(nil)) // it has nothing in memory
				for range 20 {
					for i, r := range replicas {
						require.NoError(f, r.Ready())
						require.NoError(f, verify(r, f.bundle()), "replica %d", i)
					}
					f.after(time.Minute)
				}
				second := f.authority()
				assert.False(f, first.cert.Equal(second.cert))
				for _, r := range replicas {
					assert.True(f, r.certificates.servingCA.cert.Equal(second.cert), "all have moved to the new one")
				}
			})
		})
	}
}

// Serving certificates are made for the Service of the flags, whatever there was before.
func TestCertificateIsForTheService(t *testing.T) {
	play(t, nil, func(f *fixture) {
		f.start(nil).stop()
		f.after(time.Minute)
		r := f.start(func(o *Options) { o.Service.Name = "renamed"; o.APIs = []API{taking} })
		assert.Equal(f, "renamed", f.registered().Spec.Service.Name)
		chain, _ := r.Certificate().CurrentCertKeyContent()
		certs, err := cert.ParseCertsPEM(chain)
		require.NoError(f, err)
		assert.Equal(f, []string{"renamed.foresail-system.svc"}, certs[0].DNSNames)
		assert.ErrorContains(f, verify(r, f.bundle()), "valid for renamed.foresail-system.svc")
	})
}

// racing lets a replica see the cluster as it was before another one has written to it: once for each kind of object.
func racing(f *fixture, stale ...client.Object) client.WithWatch {
	left := map[string]client.Object{}
	for _, o := range stale {
		left[fmt.Sprintf("%T", o)] = o
	}
	return interceptor.NewClient(f.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object,
			opts ...client.GetOption) error {
			old, ok := left[fmt.Sprintf("%T", into)]
			delete(left, fmt.Sprintf("%T", into))
			switch {
			case !ok:
				return c.Get(ctx, key, into, opts...)
			case old.GetName() == "":
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			switch into := into.(type) {
			case *corev1.Secret:
				old.(*corev1.Secret).DeepCopyInto(into)
			case *apiregistrationv1.APIService:
				old.(*apiregistrationv1.APIService).DeepCopyInto(into)
			}
			return nil
		},
	})
}

func TestLoserOfARaceTakesWhatTheWinnerWrote(t *testing.T) {
	for name, stale := range map[string]func(*fixture) []client.Object{
		"creating": func(*fixture) []client.Object {
			return []client.Object{&corev1.Secret{}, &apiregistrationv1.APIService{}}
		},
		"updating": func(f *fixture) []client.Object {
			old := f.secret()
			mended := old.DeepCopy()
			old.Data = nil
			require.NoError(f, f.client.Update(f.ctx, mended.DeepCopy())) // by now it is another version
			registered := f.registered()
			registered.Spec.CABundle = nil
			return []client.Object{old, registered}
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, nil, func(f *fixture) {
				winner := f.start(nil)
				first := f.authority()
				loser := f.start(func(o *Options) { o.Client = racing(f, stale(f)...) })
				f.after(retryAfter)
				assert.NoError(f, loser.Ready())
				assert.True(f, first.cert.Equal(f.authority().cert))
				for _, r := range []*replica{winner, loser} {
					assert.NoError(f, verify(r, f.bundle()))
					assert.True(f, r.certificates.servingCA.cert.Equal(first.cert))
				}
			})
		})
	}
}

// forbidding rejects requests about a kind of object while it is on.
func forbidding(f *fixture, on *atomic.Bool, like client.Object, verbs ...string) client.WithWatch {
	reject := func(verb string, o client.Object) error {
		if !on.Load() || fmt.Sprintf("%T", o) != fmt.Sprintf("%T", like) || !slices.Contains(verbs, verb) {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: fmt.Sprintf("%T", o)}, o.GetName(),
			errors.New("no RBAC policy matched"))
	}
	return interceptor.NewClient(f.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object,
			opts ...client.GetOption) error {
			return errors.Join(reject("get", into), c.Get(ctx, key, into, opts...))
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := reject("create", o); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := reject("update", o); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			if err := reject("patch", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
}

// A replica without rights says so and is not ready: a rollout waits for it, and the replicas before it serve on.
func TestMissingRightsAreSaid(t *testing.T) {
	secret, object := client.Object(&corev1.Secret{}), client.Object(&apiregistrationv1.APIService{})
	for name, c := range map[string]struct {
		like    client.Object
		verbs   []string
		message string
	}{
		"read the Secret": {secret, []string{"get"},
			"read the Secret foresail-system/foresail-apiservice-ca of the certificate authority:"},
		"create the Secret": {secret, []string{"create"},
			"write the Secret foresail-system/foresail-apiservice-ca of the certificate authority:"},
		"read the APIService":   {object, []string{"get"}, "read the APIService v1beta1.external.metrics.k8s.io:"},
		"create the APIService": {object, []string{"create"}, "create the APIService v1beta1.external.metrics.k8s.io:"},
		"read the owner": {&rbacv1.ClusterRole{}, []string{"get"},
			"read the ClusterRole foresail-apiservice that is to own the APIService:"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, nil, func(f *fixture) {
				var on atomic.Bool
				on.Store(true)
				r := f.start(func(o *Options) { o.Client = forbidding(f, &on, c.like, c.verbs...) })
				assert.ErrorContains(f, r.Ready(), c.message)
				assert.ErrorContains(f, r.Ready(), "no RBAC policy matched")
				assert.Nil(f, f.registered(), "it could not be verified")
				f.after(10 * retryAfter)
				assert.GreaterOrEqual(f, testutil.ToFloat64(r.metrics.failures), 10.0)

				on.Store(false)
				f.after(retryAfter)
				assert.NoError(f, r.Ready())
				assert.NoError(f, verify(r, f.bundle()))

				on.Store(true)
				f.after(10 * time.Minute)
				assert.NoError(f, r.Ready(), "readiness is not withdrawn")
				assert.NoError(f, verify(r, f.bundle()))
			})
		})
	}
}

// An authority that cannot be replaced signs until it expires, and is replaced as soon as that is possible.
func TestRenewalThatFailsIsMadeUpFor(t *testing.T) {
	play(t, nil, func(f *fixture) {
		var forbidden atomic.Bool
		secret := client.Object(&corev1.Secret{})
		r := f.start(func(o *Options) { o.Client = forbidding(f, &forbidden, secret, "update") })
		first := f.authority()
		forbidden.Store(true)
		f.after(time.Until(first.cert.NotAfter) - time.Minute)
		require.NoError(f, verify(r, f.bundle()))
		assert.Positive(f, testutil.ToFloat64(r.metrics.failures))
		late := f.start(nil) // another replica may
		require.NoError(f, verify(late, f.bundle()))
		for range 10 {
			f.after(10 * time.Second)
			require.NoError(f, verify(r, f.bundle()), "it takes over the other's in time")
		}
	})
}

// The authority is renewed although the owner cannot be read any more.
func TestRenewalDoesNotNeedTheOwner(t *testing.T) {
	play(t, nil, func(f *fixture) {
		r := f.start(nil)
		require.NoError(f, f.client.Delete(f.ctx, role.DeepCopy()))
		for range 2 * validity / time.Minute {
			f.after(time.Minute)
			require.NoError(f, verify(r, f.bundle()))
		}
		assert.Zero(f, testutil.ToFloat64(r.metrics.failures))
	})
}

func TestMissingOwnerIsSaid(t *testing.T) {
	play(t, nil, func(f *fixture) {
		require.NoError(f, f.client.Delete(f.ctx, role.DeepCopy()))
		r := f.start(nil)
		assert.ErrorContains(f, r.Ready(),
			"the ClusterRole foresail-apiservice that is to own the APIService does not exist: apply rbac-apiservice.yaml of Foresail's manifests")
	})
}

// A user who uninstalls Foresail removes the ClusterRole, and with it the APIService. It must not come back.
func TestAPIServiceIsNotCreatedWithoutItsOwner(t *testing.T) {
	play(t, nil, func(f *fixture) {
		r := f.start(nil)
		require.NoError(f, f.client.Delete(f.ctx, role.DeepCopy()))
		require.NoError(f, f.client.Delete(f.ctx, f.registered()))
		f.after(time.Hour)
		assert.Nil(f, f.registered())
		assert.Equal(f, map[string]float64{"": 0}, r.gauge(f))

		again := role.DeepCopy()
		again.UID = "role-2"
		require.NoError(f, f.client.Create(f.ctx, again))
		f.after(retryAfter)
		require.NotNil(f, f.registered())
		assert.EqualValues(f, "role-2", f.registered().OwnerReferences[0].UID)
	})
}

// A caBundle has what Foresail has signed with, without what is expired, foreign or too much.
func TestBundle(t *testing.T) {
	now := time.Now()
	var all []*authority
	var pem []byte
	for i := range 10 {
		a, err := newAuthority(now, time.Duration(i)*time.Hour)
		require.NoError(t, err)
		all = append(all, a)
		data, err := a.data()
		require.NoError(t, err)
		pem = append(pem, data["tls.crt"]...)
	}
	pem = append(pem, selfSigned(t, func(c *x509.Certificate) { c.Subject.CommonName = "another" })["tls.crt"]...)
	made, err := bundle(now, pem, isAuthority, all[9], nil, all[2])
	require.NoError(t, err)
	certs, err := cert.ParseCertsPEM(made)
	require.NoError(t, err)
	var got []string
	for _, c := range certs {
		got = append(got, c.SerialNumber.String())
	}
	var want []string
	for _, i := range []int{9, 8, 7, 6, 5, 4, 3, 2} {
		want = append(want, all[i].cert.SerialNumber.String())
	}
	assert.Equal(t, want, got)
	again, err := bundle(now, made, isAuthority, all[2], all[9])
	require.NoError(t, err)
	assert.Equal(t, made, again, "all replicas write the same")
}
