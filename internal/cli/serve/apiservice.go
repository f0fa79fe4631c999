package serve

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/foresail/foresail/adapter/apiservice"
	"github.com/foresail/foresail/internal/cli"
)

const (
	apiServiceFlag       = "apiservice"
	apiServiceTakeOver   = "apiservice-take-over"
	apiServiceNamespace  = "apiservice-namespace"
	apiServiceName       = "apiservice-service"
	apiServicePort       = "apiservice-port"
	apiServiceOwner      = "apiservice-owner"
	apiServiceSecret     = "apiservice-ca-secret"
	apiServiceValidity   = "apiservice-ca-validity"
	apiServiceInjectFrom = "apiservice-inject-ca-from"

	// minValidity leaves the steps of a renewal seconds apart.
	minValidity = 30 * time.Second
)

// apiServiceOptions are the flags of the registration of external metrics.
type apiServiceOptions struct {
	enabled  bool
	takeOver bool
	service  apiservice.Service
	owner    string
	secret   string
	validity time.Duration
	inject   string
}

func (o *apiServiceOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.enabled, apiServiceFlag, true, "Create the APIService "+apiservice.ExternalMetrics("", false).Name()+" if there is none, and write the certificate authority of the serving certificate into it. With false that is yours to do, and a serving certificate that is not given is signed by itself.")
	fs.BoolVar(&o.takeOver, apiServiceTakeOver, false, "Take the APIService from another server, such as KEDA's or Datadog's, whose metrics HPAs cannot read from then on.")
	fs.StringVar(&o.service.Namespace, apiServiceNamespace, podNamespace(), "Namespace of the Service that the APIService leads to, and of the Secret of the certificate authority. In a pod it defaults to the pod's.")
	fs.StringVar(&o.service.Name, apiServiceName, "foresail", "Service that the APIService leads to.")
	fs.Int32Var(&o.service.Port, apiServicePort, 443, "Port of that Service.")
	fs.StringVar(&o.owner, apiServiceOwner, "foresail-apiservice", "ClusterRole that owns the APIService, so that one is removed with the other. Empty leaves the APIService behind when Foresail is uninstalled.")
	fs.StringVar(&o.secret, apiServiceSecret, "foresail-apiservice-ca", "Secret of the certificate authority that signs serving certificates, unless --tls-cert-file or --cert-dir gives one. It is created.")
	fs.DurationVar(&o.validity, apiServiceValidity, 365*24*time.Hour, "How long that authority is valid. Another one follows after two thirds of it.")
	fs.StringVar(&o.inject, apiServiceInjectFrom, "", "Certificate of cert-manager, as namespace/name, whose authority cert-manager is to write into the APIService. For --tls-cert-file.")
}

// validate checks the flags; given is whether the serving certificate comes from files.
func (o *apiServiceOptions) validate(given bool) error {
	if !o.enabled {
		return o.validateDisabled()
	}
	var errs []error
	for _, name := range []struct{ flag, value, accept string }{
		{apiServiceNamespace, o.service.Namespace, "the namespace that this runs in, or outside of a cluster that of the Service which leads here, unless --" + apiServiceFlag + "=false"},
		{apiServiceName, o.service.Name, "the name of a Service"},
	} {
		if len(validation.IsDNS1123Label(name.value)) > 0 {
			errs = append(errs, cli.BadFlag(name.flag, fmt.Sprintf("%q", name.value), name.accept))
		}
	}
	if len(validation.IsDNS1123Subdomain(o.secret)) > 0 {
		errs = append(errs, cli.BadFlag(apiServiceSecret, fmt.Sprintf("%q", o.secret), "the name of a Secret"))
	}
	if len(validation.IsValidPortNum(int(o.service.Port))) > 0 {
		errs = append(errs, cli.BadFlag(apiServicePort, o.service.Port, "from 1 to 65535"))
	}
	if o.validity < minValidity {
		errs = append(errs, cli.BadFlag(apiServiceValidity, o.validity, "at least "+minValidity.String()))
	}
	return errors.Join(append(errs, o.validateInjection(given))...)
}

func (o *apiServiceOptions) validateDisabled() error {
	var errs []error
	if o.takeOver {
		errs = append(errs, cli.BadFlag(apiServiceTakeOver, true, "left out with --"+apiServiceFlag+"=false"))
	}
	if o.inject != "" {
		errs = append(errs, cli.BadFlag(apiServiceInjectFrom, fmt.Sprintf("%q", o.inject), "left out with --"+apiServiceFlag+"=false"))
	}
	return errors.Join(errs...)
}

func (o *apiServiceOptions) validateInjection(given bool) error {
	namespace, name, ok := strings.Cut(o.inject, "/")
	switch {
	case o.inject == "" && given && o.takeOver:
		return cli.BadFlag(apiServiceTakeOver, true, "given with --"+apiServiceInjectFrom+", as the certificate is given by --tls-cert-file")
	case o.inject == "":
		return nil
	case !given:
		return cli.BadFlag(apiServiceInjectFrom, fmt.Sprintf("%q", o.inject), "left out unless --tls-cert-file is given")
	case !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0:
		return cli.BadFlag(apiServiceInjectFrom, fmt.Sprintf("%q", o.inject), "a namespace and a name, such as foresail-system/foresail")
	}
	return nil
}

// registrar returns what registers external metrics and further APIs, nil with --apiservice=false; answers returns why there are no
// forecasts yet.
func (o *apiServiceOptions) registrar(mgr ctrl.Manager, given bool, answers func() error, further ...apiservice.API) (*apiservice.Registrar, error) {
	if !o.enabled {
		return nil, nil
	}
	client, err := apiservice.NewClient(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("make a client for APIServices: %w", err)
	}
	secret := o.secret
	if given {
		secret = ""
	}
	return apiservice.New(apiservice.Options{
		Client: client, Events: mgr.GetEventRecorder("foresail"), Registerer: metrics.Registry, Now: time.Now,
		APIs:    append([]apiservice.API{apiservice.ExternalMetrics(o.owner, o.takeOver)}, further...),
		Answers: answers, Service: o.service, Secret: secret, Validity: o.validity, InjectCAFrom: o.inject,
	})
}
