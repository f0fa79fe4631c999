package score

import (
	"math"
	"strconv"
)

// Prices are what pods and time above the threshold cost, in one currency.
type Prices struct {
	PodHour  float64
	Minute   float64 // above the threshold
	Currency string
}

// Bill returns what pods and time above the threshold cost together.
func (p *Prices) Bill(podHours, minutes float64) float64 {
	return p.PodHour*podHours + p.Minute*minutes
}

// Text writes an amount with its currency.
func (p *Prices) Text(amount float64) string { return p.Amount(amount) + " " + p.Currency }

// Amount writes an amount to the hundredth, or to two significant digits if it is smaller than that.
func (p *Prices) Amount(amount float64) string {
	format, digits := byte('f'), 2
	if a := math.Abs(amount); a > 0 && a < 0.01 {
		format = 'g'
	}
	return strconv.FormatFloat(amount, format, digits, 64)
}
