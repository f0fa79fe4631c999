package serve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/foresail/foresail/adapter/door/keda"
	"github.com/foresail/foresail/internal/cli"
)

const (
	// kedaFlags is what the names of all flags of KEDA begin with.
	kedaFlags       = "keda-"
	kedaAddressFlag = kedaFlags + "address"
	// kedaClientNamesFlag has an effect where the folder of kedaCertFlag has authorities.
	kedaCertFlag        = kedaFlags + "cert-dir"
	kedaClientNamesFlag = kedaFlags + "client-names"
)

// kedaDoor is the door for KEDA: an external scaler.
type kedaDoor struct {
	options   keda.Options
	certDir   string
	anonymous *anonymousOptions
	flags     *pflag.FlagSet // that all of these are of
}

func (d *kedaDoor) addFlags(groups *cliflag.NamedFlagSets) {
	fs := groups.FlagSet(groupKEDA)
	d.flags = fs
	fs.StringVar(&d.options.Address, kedaAddressFlag, "", "Address to answer KEDA on as an external scaler, over "+
		"gRPC, such as :9600; empty or 0 answers none. One that is not on loopback needs ca.crt in "+
		"--keda-cert-dir, or --allow-anonymous=keda.")
	fs.StringVar(&d.certDir, kedaCertFlag, "", "Folder with the certificate of that address, tls.crt, and its "+
		"key, tls.key, read again when they change; empty is without TLS. "+
		"If it has ca.crt too, KEDA needs a client certificate of these authorities.")
	fs.StringSliceVar(&d.options.ClientNames, kedaClientNamesFlag, []string{keda.DefaultClientName},
		"Names of which KEDA's client "+
			"certificate needs one, compared exactly: a DNS name of it, or its common name if it has no DNS names.")
}

// enabled reports whether KEDA is answered.
func (d *kedaDoor) enabled() bool {
	return d.options.Address != "" && d.options.Address != noAddress
}

// validate also reads the files that flags name.
func (d *kedaDoor) validate() error {
	if !d.enabled() {
		return d.validateAbsence("left out while --" + kedaAddressFlag + " is empty, which answers no KEDA")
	}
	if err := checkCertDir(kedaCertFlag, d.certDir); err != nil {
		return err
	}
	options := d.complete()
	return errors.Join(inKEDAFlags(options.Validate()),
		refuseNames(d.flags, kedaClientNamesFlag, kedaCertFlag, options.ClientCAFile))
}

// complete returns the options with the files of the folder.
func (d *kedaDoor) complete() keda.Options {
	o := d.options
	o.CertFile, o.KeyFile = certificateIn(d.certDir)
	o.ClientCAFile, o.AllowAnonymous = authoritiesIn(d.certDir), d.anonymous.allows(anonymousKEDA)
	return o
}

// validateAbsence refuses flags that would have no effect. An address that says so is none.
func (d *kedaDoor) validateAbsence(accept string) error {
	if d.enabled() {
		return refuseFlags(d.flags, kedaFlags, accept)
	}
	var errs []error
	d.flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != kedaAddressFlag {
			errs = append(errs, refuseFlags(d.flags, f.Name, accept))
		}
	})
	return errors.Join(errs...)
}

// flagsOfKEDA are the flags that set the options which a keda.OptionError may name.
func flagsOfKEDA() map[string]string {
	return map[string]string{
		"Address": kedaAddressFlag, "CertFile": kedaCertFlag, "KeyFile": kedaCertFlag, "ClientCAFile": kedaCertFlag,
		"ClientNames": kedaClientNamesFlag, "AllowAnonymous": anonymousFlag + "=" + anonymousKEDA,
	}
}

// inKEDAFlags says errors of options, joined ones too, in terms of flags.
func inKEDAFlags(err error) error { return eachJoined(err, inKEDAFlag) }

func inKEDAFlag(err error) error {
	option, ok := errors.AsType[*keda.OptionError](err)
	if !ok {
		return err
	}
	accept := strings.ReplaceAll(option.Accept, "ClientCAFile", authoritiesName+" in --"+kedaCertFlag)
	for name, flag := range flagsOfKEDA() {
		accept = strings.ReplaceAll(accept, name, "--"+flag)
	}
	if option.Err != nil {
		accept = fmt.Sprintf("%s: %v", accept, option.Err)
	}
	return cli.BadFlag(flagsOfKEDA()[option.Option], fmt.Sprintf("%q", option.Value), accept)
}

func (d *kedaDoor) open(ctx context.Context, o *doorOptions) (*part, error) {
	if !d.enabled() {
		return nil, nil
	}
	server, err := keda.NewServer(d.complete(), keda.NewScaler(o.forecaster, o.known, time.Now), o.forecasts)
	if err != nil {
		return nil, inKEDAFlags(err)
	}
	metrics.Registry.MustRegister(server)
	klog.FromContext(ctx).Info("Serving KEDA", "address", server.Addr())
	return &part{run: []func(context.Context) error{server.Run}}, nil
}
