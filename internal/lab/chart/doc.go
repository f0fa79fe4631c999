// Package chart draws pages of charts, as SVG and as PNG. What is drawn is a function of the page to the byte: there are no
// dates and no random names in files.
package chart
