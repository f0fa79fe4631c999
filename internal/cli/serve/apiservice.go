package serve

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	apiServiceName       = "apiservice-service"
	apiServiceInjectFrom = "apiservice-inject-ca-from"

	// Values of apiServiceFlag.
	apiServiceCreate   = "create"
	apiServiceTakeOver = "take-over"
	apiServiceNone     = "none"
	acceptAPIService   = apiServiceCreate + ", " + apiServiceTakeOver + " or " + apiServiceNone

	// apiServiceOwner is the ClusterRole that owns the APIService, so that one is removed with the other.
	apiServiceOwner = "foresail-apiservice"
	// apiServiceSecret has the certificate authority that signs serving certificates. The manifests have the right to
	// this one alone.
	apiServiceSecret = "foresail-apiservice-ca"
	// apiServiceValidity is long, as another authority follows after two thirds of it.
	apiServiceValidity = 365 * 24 * time.Hour
	httpsPort          = 443
)

// apiServiceOptions are the flags of the registration of external metrics.
type apiServiceOptions struct {
	mode      string
	namespace *string // that Foresail runs in
	service   string  // a name, and perhaps a port
	validity  time.Duration
	inject    string
}

func (o *apiServiceOptions) enabled() bool { return o.mode != apiServiceNone }

func (o *apiServiceOptions) takeOver() bool { return o.mode == apiServiceTakeOver }

func (o *apiServiceOptions) addFlags(fs *pflag.FlagSet) {
	name := apiservice.ExternalMetrics("", false).Name()
	fs.StringVar(&o.mode, apiServiceFlag, apiServiceCreate, "What to do about the APIService "+name+", which "+
		"leads the API server to Foresail. "+
		"create: create it if there is none, and write the certificate authority of the serving certificate into it. "+
		"take-over: take it from another server too, such as KEDA's or Datadog's, whose metrics HPAs cannot read "+
		"from then on. "+
		"none: it is yours to create, and a serving certificate that is not given is signed by itself.")
	fs.StringVar(&o.service, apiServiceName, "foresail", "Service that the APIService leads to, with its port "+
		"unless that is 443, such as foresail:6443.")
	fs.StringVar(&o.inject, apiServiceInjectFrom, "", "Certificate of cert-manager, as namespace/name, whose "+
		"authority cert-manager is to write into the APIService. For --cert-dir.")
	o.validity = apiServiceValidity
}

func (o *apiServiceOptions) addTestOptions(fs *pflag.FlagSet) {
	fs.DurationVar(&o.validity, "apiservice-ca-validity", o.validity, "How long the certificate authority is valid.")
}

// target returns the Service that the APIService leads to.
func (o *apiServiceOptions) target() (apiservice.Service, error) {
	target := apiservice.Service{Namespace: *o.namespace, Name: o.service, Port: httpsPort}
	if name, port, found := strings.Cut(o.service, ":"); found {
		number, err := strconv.ParseInt(port, 10, 32)
		if err != nil || len(validation.IsValidPortNum(int(number))) > 0 {
			return target, cli.BadFlag(apiServiceName, fmt.Sprintf("%q", o.service), "the name of a Service, and "+
				"perhaps a port from 1 to 65535, such as foresail:6443")
		}
		target.Name, target.Port = name, int32(number)
	}
	if len(validation.IsDNS1123Label(target.Name)) > 0 {
		return target, cli.BadFlag(apiServiceName, fmt.Sprintf("%q", o.service), "the name of a Service, and "+
			"perhaps a port, such as foresail:6443")
	}
	return target, nil
}

// validate checks the flags; given is whether the serving certificate comes from files.
func (o *apiServiceOptions) validate(given bool) error {
	if !slices.Contains([]string{apiServiceCreate, apiServiceTakeOver, apiServiceNone}, o.mode) {
		return cli.BadFlag(apiServiceFlag, fmt.Sprintf("%q", o.mode), acceptAPIService)
	}
	if !o.enabled() {
		return o.validateDisabled()
	}
	_, err := o.target()
	errs := []error{err}
	if len(validation.IsDNS1123Label(*o.namespace)) > 0 {
		errs = append(errs, cli.BadFlag(namespaceFlag, fmt.Sprintf("%q", *o.namespace),
			"the namespace that this runs in, or outside of a cluster that of the Service which leads here, "+
				"unless --"+apiServiceFlag+"="+apiServiceNone))
	}
	return errors.Join(append(errs, o.validateInjection(given))...)
}

func (o *apiServiceOptions) validateDisabled() error {
	if o.inject == "" {
		return nil
	}
	return cli.BadFlag(apiServiceInjectFrom, fmt.Sprintf("%q", o.inject),
		"left out with --"+apiServiceFlag+"="+apiServiceNone)
}

func (o *apiServiceOptions) validateInjection(given bool) error {
	namespace, name, ok := strings.Cut(o.inject, "/")
	switch {
	case o.inject == "" && given && o.takeOver():
		return cli.BadFlag(apiServiceFlag, o.mode, "given with --"+apiServiceInjectFrom+", as the certificate is "+
			"given by --cert-dir")
	case o.inject == "":
		return nil
	case !given:
		return cli.BadFlag(apiServiceInjectFrom, fmt.Sprintf("%q", o.inject), "left out unless --cert-dir is given")
	case !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0:
		return cli.BadFlag(apiServiceInjectFrom, fmt.Sprintf("%q", o.inject),
			"a namespace and a name, such as foresail-system/foresail")
	}
	return nil
}

// registrar returns what registers external metrics and further APIs, nil if that is not Foresail's to do; answers
// returns why there are no forecasts yet.
func (o *apiServiceOptions) registrar(mgr ctrl.Manager, given bool, answers func() error,
	further ...apiservice.API) (*apiservice.Registrar, error) {
	if !o.enabled() {
		return nil, nil
	}
	client, err := apiservice.NewClient(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("make a client for APIServices: %w", err)
	}
	secret := apiServiceSecret
	if given {
		secret = ""
	}
	service, err := o.target()
	if err != nil {
		return nil, err
	}
	return apiservice.New(apiservice.Options{
		Client: client, Events: mgr.GetEventRecorder("foresail"), Registerer: metrics.Registry, Now: time.Now,
		APIs:    append([]apiservice.API{apiservice.ExternalMetrics(apiServiceOwner, o.takeOver())}, further...),
		Answers: answers, Service: service, Secret: secret, Validity: o.validity, InjectCAFrom: o.inject,
	})
}
