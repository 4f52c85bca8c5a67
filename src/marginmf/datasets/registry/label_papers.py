"""What to cite for each label set."""

BIBTEX = (
    "I. Katakis, G. Tsoumakas and I. Vlahavas. 2008. Multilabel Text Classification for Automated "
    "Tag Suggestion. ECML PKDD 2008 Discovery Challenge, 75-83."
)
CAL500 = (
    "D. Turnbull, L. Barrington, D. Torres and G. Lanckriet. 2008. Semantic Annotation and "
    "Retrieval of Music and Sound Effects. IEEE Transactions on Audio, Speech, and Language "
    "Processing 16, 2, 467-476."
)
COREL16K = (
    "K. Barnard, P. Duygulu, D. Forsyth, N. de Freitas, D. M. Blei and M. I. Jordan. 2003. "
    "Matching Words and Pictures. Journal of Machine Learning Research 3, 1107-1135."
)
COREL5K = (
    "P. Duygulu, K. Barnard, J. F. G. de Freitas and D. A. Forsyth. 2002. Object Recognition as "
    "Machine Translation: Learning a Lexicon for a Fixed Image Vocabulary. ECCV 2002, LNCS 2353, "
    "97-112."
)
DELICIOUS = (
    "G. Tsoumakas, I. Katakis and I. Vlahavas. 2008. Effective and Efficient Multilabel "
    "Classification in Domains with Large Number of Labels. ECML/PKDD 2008 Workshop on Mining "
    "Multidimensional Data, 30-44."
)
EMOTIONS = (
    "A. Wieczorkowska, P. Synak and Z. Raś. 2006. Multi-Label Classification of Emotions in Music. "
    "Intelligent Information Processing and Web Mining 35, 307-315."
)
ENRON = (
    "B. Klimt and Y. Yang. 2004. The Enron Corpus: A New Dataset for Email Classification "
    "Research. ECML 2004, 217-226."
)
GENBASE = (
    "S. Diplaris, G. Tsoumakas, P. Mitkas and I. Vlahavas. 2005. Protein Classification with "
    "Multiple Algorithms. 10th Panhellenic Conference on Informatics, 448-456."
)
HUMAN = (
    "H.-B. Shen and K.-C. Chou. 2009. A Top-Down Approach to Enhance the Power of Predicting Human "
    "Protein Subcellular Localization: Hum-mPLoc 2.0. Analytical Biochemistry 394, 2, 269-274."
)
LANGLOG = "J. Read. 2010. Scalable Multi-label Classification. PhD thesis, University of Waikato."
MEDIAMILL = (
    "C. G. M. Snoek, M. Worring, J. C. van Gemert, J.-M. Geusebroek and A. W. M. Smeulders. 2006. "
    "The Challenge Problem for Automated Detection of 101 Semantic Concepts in Multimedia. "
    "14th ACM International Conference on Multimedia, 421-430."
)
MEDICAL = (
    "K. Crammer, M. Dredze, K. Ganchev, P. P. Talukdar and S. Carroll. 2007. Automatic Code "
    "Assignment to Medical Text. BioNLP 2007, 129-136."
)
OHSUMED = (
    "T. Joachims. 1998. Text Categorization with Support Vector Machines: Learning with Many "
    "Relevant Features. ECML 1998, 137-142."
)
PLANT = (
    "K.-C. Chou and H.-B. Shen. 2010. Plant-mPLoc: A Top-Down Strategy to Augment the Power for "
    "Predicting Plant Protein Subcellular Localization. PLoS ONE 5, 6, e11335."
)
REUTERS = (
    "D. D. Lewis, Y. Yang, T. G. Rose and F. Li. 2004. RCV1: A New Benchmark Collection for Text "
    "Categorization Research. Journal of Machine Learning Research 5, 361-397."
)
SCENE = (
    "M. R. Boutell, J. Luo, X. Shen and C. M. Brown. 2004. Learning Multi-label Scene "
    "Classification. Pattern Recognition 37, 9, 1757-1771."
)
YAHOO = (
    "N. Ueda and K. Saito. 2002. Parametric Mixture Models for Multi-labeled Text. Advances in "
    "Neural Information Processing Systems 15, 721-728."
)
YEAST = (
    "A. Elisseeff and J. Weston. 2001. A Kernel Method for Multi-labelled Classification. Advances "
    "in Neural Information Processing Systems 14, 681-687."
)
