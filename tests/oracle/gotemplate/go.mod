module nstance.dev/oracle/gotemplate

go 1.27
