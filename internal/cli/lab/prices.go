package lab

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/lab/score"
)

// priceFlags are the flags with the prices of pods and of time above the threshold.
type priceFlags struct{ pod, minute string }

const acceptedPrice = "an amount of 0 or more and its currency, such as 0.04USD"

// defaultCurrency is that of amounts without one, as in foresail cost.
const defaultCurrency = "USD"

func (p *priceFlags) addFlags(f *pflag.FlagSet) {
	f.StringVar(&p.pod, "pod-price", "",
		"`price` of a pod for an hour, such as 0.04EUR (without a currency: USD), to have costs in money; needs --minute-price")
	f.StringVar(&p.minute, "minute-price", "",
		"`price` of a minute above the threshold, such as 5EUR: what it costs you that users wait; needs --pod-price")
}

// parse returns the prices, nil without any.
func (p *priceFlags) parse() (*score.Prices, error) {
	if p.pod == "" && p.minute == "" {
		return nil, nil
	}
	pod, currency, podErr := parsePrice("pod-price", p.pod)
	minute, other, minuteErr := parsePrice("minute-price", p.minute)
	if err := errors.Join(podErr, minuteErr); err != nil {
		return nil, err
	}
	if currency != other {
		return nil, cli.BadFlag("minute-price", fmt.Sprintf("%q", p.minute),
			fmt.Sprintf("in the currency of --pod-price (%s)", currency))
	}
	if pod == 0 && minute == 0 {
		return nil, cli.BadFlag("pod-price", fmt.Sprintf("%q", p.pod), "above 0, or --minute-price must be")
	}
	return &score.Prices{PodHour: pod, Minute: minute, Currency: currency}, nil
}

var amountAndCurrency = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?|\.[0-9]+) ?([A-Za-z]{3}|\p{Sc})?$`)

func parsePrice(flag, text string) (amount float64, currency string, err error) {
	if text == "" {
		return 0, "", cli.BadFlag(flag, "missing", acceptedPrice+", as the other price is given")
	}
	parts := amountAndCurrency.FindStringSubmatch(text)
	if parts == nil {
		return 0, "", cli.BadFlag(flag, fmt.Sprintf("%q", text), acceptedPrice)
	}
	if amount, err = strconv.ParseFloat(parts[1], 64); err != nil {
		return 0, "", cli.BadFlag(flag, fmt.Sprintf("%q", text), acceptedPrice)
	}
	if currency = strings.ToUpper(parts[2]); currency == "" {
		currency = defaultCurrency
	}
	return amount, currency, nil
}
