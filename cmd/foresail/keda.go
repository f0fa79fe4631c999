package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/foresail/foresail/adapter/keda"
	"github.com/foresail/foresail/adapter/serving"
)

const (
	// kedaFlags is what the names of all flags of KEDA begin with.
	kedaFlags       = "keda-"
	kedaAddressFlag = kedaFlags + "address"
	// kedaClientCAFlag and kedaClientNamesFlag have an effect together.
	kedaClientCAFlag    = kedaFlags + "client-ca-file"
	kedaClientNamesFlag = kedaFlags + "client-names"
)

// kedaOptions are the flags of the external scaler.
type kedaOptions struct {
	options keda.Options
	flags   *pflag.FlagSet // that all of these are of
}

func (o *kedaOptions) addFlags(fs *pflag.FlagSet) {
	o.flags = fs
	fs.StringVar(&o.options.Address, kedaAddressFlag, "", "Address to answer KEDA on as an external scaler, over gRPC, such as :9600; empty or 0 answers none. One that is not on loopback needs --keda-client-ca-file or --keda-allow-anonymous.")
	fs.StringVar(&o.options.CertFile, kedaFlags+"tls-cert-file", "", "File with the certificate of that address, read again when it changes; empty is without TLS.")
	fs.StringVar(&o.options.KeyFile, kedaFlags+"tls-private-key-file", "", "File with the private key of that certificate.")
	fs.StringVar(&o.options.ClientCAFile, kedaClientCAFlag, "", "File with the authorities of KEDA's client certificate, read again when it changes; empty asks for no certificate.")
	fs.StringSliceVar(&o.options.ClientNames, kedaClientNamesFlag, []string{keda.DefaultClientName}, "Names of which KEDA's client "+
		"certificate needs one, compared exactly: a DNS name of it, or its common name if it has no DNS names.")
	fs.BoolVar(&o.options.AllowAnonymous, kedaFlags+"allow-anonymous", false, "Answer anyone who can reach the address, without a client certificate. For an address that a NetworkPolicy closes to all but KEDA.")
}

// enabled tells whether KEDA is answered.
func (o *kedaOptions) enabled() bool {
	return o.options.Address != "" && o.options.Address != noAddress
}

// validate also reads the files that flags name.
func (o *kedaOptions) validate() error {
	if !o.enabled() {
		return o.validateAbsence("left out while --" + kedaAddressFlag + " is empty, which answers no KEDA")
	}
	return errors.Join(inKEDAFlags(o.options.Validate()), refuseNames(o.flags, kedaClientNamesFlag, kedaClientCAFlag))
}

// validateAbsence refuses flags that would have no effect. An address that says so is none.
func (o *kedaOptions) validateAbsence(accept string) error {
	if o.enabled() {
		return refuseFlags(o.flags, kedaFlags, accept)
	}
	var errs []error
	o.flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != kedaAddressFlag {
			errs = append(errs, refuseFlags(o.flags, f.Name, accept))
		}
	})
	return errors.Join(errs...)
}

// flagsOfKEDA are the flags that set the options which a keda.OptionError may name.
func flagsOfKEDA() map[string]string {
	return map[string]string{
		"Address": kedaAddressFlag, "CertFile": kedaFlags + "tls-cert-file", "KeyFile": kedaFlags + "tls-private-key-file",
		"ClientCAFile": kedaClientCAFlag, "ClientNames": kedaClientNamesFlag,
		"AllowAnonymous": kedaFlags + "allow-anonymous",
	}
}

// inKEDAFlags says errors of options, joined ones too, in terms of flags.
func inKEDAFlags(err error) error { return eachJoined(err, inKEDAFlag) }

func inKEDAFlag(err error) error {
	option, ok := errors.AsType[*keda.OptionError](err)
	if !ok {
		return err
	}
	accept := option.Accept
	for name, flag := range flagsOfKEDA() {
		accept = strings.ReplaceAll(accept, name, "--"+flag)
	}
	if option.Err != nil {
		accept = fmt.Sprintf("%s: %v", accept, option.Err)
	}
	return badFlag(flagsOfKEDA()[option.Option], fmt.Sprintf("%q", option.Value), accept)
}

// server returns what answers KEDA, nil if nothing does. known returns why not every PredictedMetric is known yet, ready why there are
// no forecasts yet.
func (o *kedaOptions) server(reader serving.Reader, known, ready func() error) (*keda.Server, error) {
	if !o.enabled() {
		return nil, nil
	}
	server, err := keda.NewServer(o.options, keda.NewScaler(reader, known, time.Now), ready)
	if err != nil {
		return nil, inKEDAFlags(err)
	}
	metrics.Registry.MustRegister(server)
	return server, nil
}
