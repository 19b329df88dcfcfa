"""What simple methods reach on the rows of a model: statsforecast's for series, three for tables.

scikit-learn and statsforecast are imported only where they are used, because the imports take some
seconds and 200 MB.
"""
