"""Are there more ones than zeros?"""
