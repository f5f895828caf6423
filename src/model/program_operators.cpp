// Lists the operators that a program may name, and says why others are refused.
//
// A program comes from anywhere. libtorch has operators that write files (from_file), read memory without checking a
// bound, change the storage or the shape of a tensor that others use, or stop the process. So a program may name only
// the operators below. Every other operator is refused, including those that a later libtorch adds.
//
// The list holds the operators of core ATen, and those that torch.export writes for the functions of torch, torch.nn,
// fft, linalg and special before it decomposes them. It leaves out on purpose:
// - forms that write their result into an argument (`out`). In-place forms (add_) are on the list, because training
//   needs them; model/program_writes.cpp and ProgramModel refuse those that write to a parameter or a constant;
// - operators that change storage, shape or autograd of a tensor that others hold: set_, resize_, as_strided_,
//   requires_grad_;
// - backward operators: autograd calls them itself, with arguments that it has checked;
// - operators that take sizes, offsets or pivots from a tensor and index memory by them unchecked: ctc_loss, lu_solve,
//   segment_reduce, fractional_max_pool, operators on packed sequences;
// - sparse, nested, quantized and complex-view internals, and those of other devices and of the optimizers;
// - random operators that cannot be keyed (model/keyed_random.cpp);
// - polynomials whose degree is a tensor (special_hermite_polynomial_h): their time has no limit.
#include <algorithm>
#include <vector>

#include "base/error.h"
#include "model/model.h"
#include "model/program_plan.h"

namespace sinew::model {
namespace {

// In the order of ASCII, without the namespace "aten::". program_operators_test.cpp checks the order, and that libtorch
// has each operator.
constexpr std::string_view kOperators = R"(
__and__.Scalar __and__.Tensor __iand__.Scalar __iand__.Tensor __ilshift__.Scalar __ilshift__.Tensor __ior__.Scalar
__ior__.Tensor __irshift__.Scalar __irshift__.Tensor __ixor__.Scalar __ixor__.Tensor __lshift__.Scalar
__lshift__.Tensor __or__.Scalar __or__.Tensor __rshift__.Scalar __rshift__.Tensor __xor__.Scalar __xor__.Tensor
_adaptive_avg_pool2d _adaptive_avg_pool3d _assert_async _assert_async.msg _assert_scalar _assert_tensor_metadata
_cdist_forward _convolution _embedding_bag _fft_c2c _fft_c2r _fft_r2c _functional_assert_async.msg
_functional_assert_scalar _functional_sym_constrain_range _functional_sym_constrain_range_for_size _fused_rms_norm
_linalg_det _linalg_eigh _linalg_slogdet _linalg_solve_ex _linalg_svd _local_scalar_dense _log_softmax
_native_batch_norm_legit _native_batch_norm_legit.no_stats _native_batch_norm_legit_functional
_native_batch_norm_legit_no_training _pdist_forward _prelu_kernel _safe_softmax
_scaled_dot_product_flash_attention_for_cpu _softmax _to_copy _trilinear _unsafe_index.Tensor _unsafe_index_put
_unsafe_view _upsample_bicubic2d_aa _upsample_bicubic2d_aa.vec _upsample_bilinear2d_aa _upsample_bilinear2d_aa.vec
_upsample_nearest_exact1d _upsample_nearest_exact1d.vec _upsample_nearest_exact2d _upsample_nearest_exact2d.vec
_upsample_nearest_exact3d _upsample_nearest_exact3d.vec _weight_norm _weight_norm_interface abs abs_ absolute absolute_
acos acos_ acosh acosh_ adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
adaptive_max_pool2d adaptive_max_pool3d add.Scalar add.Tensor add_.Scalar add_.Tensor addbmm addbmm_ addcdiv addcdiv_
addcmul addcmul_ addmm addmm_ addmv addmv_ addr addr_ adjoint affine_grid_generator alias alias_copy all all.dim
all.dims allclose alpha_dropout alpha_dropout_ amax amin aminmax angle any any.dim any.dims arange arange.start
arange.start_step arccos arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan arctan2 arctan2_ arctan_
arctanh arctanh_ argmax argmin argsort argsort.stable argwhere as_strided as_strided_copy as_strided_scatter asin asin_
asinh asinh_ atan atan2 atan2_ atan_ atanh atanh_ atleast_1d atleast_1d.Sequence atleast_2d atleast_2d.Sequence
atleast_3d atleast_3d.Sequence avg_pool1d avg_pool2d avg_pool3d baddbmm baddbmm_ bartlett_window
bartlett_window.periodic batch_norm bernoulli bernoulli.p bernoulli_.Tensor bernoulli_.float bilinear
binary_cross_entropy binary_cross_entropy_with_logits bincount bitwise_and.Scalar bitwise_and.Scalar_Tensor
bitwise_and.Tensor bitwise_and_.Scalar bitwise_and_.Tensor bitwise_left_shift.Scalar_Tensor bitwise_left_shift.Tensor
bitwise_left_shift.Tensor_Scalar bitwise_left_shift_.Tensor bitwise_left_shift_.Tensor_Scalar bitwise_not bitwise_not_
bitwise_or.Scalar bitwise_or.Scalar_Tensor bitwise_or.Tensor bitwise_or_.Scalar bitwise_or_.Tensor
bitwise_right_shift.Scalar_Tensor bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar
bitwise_right_shift_.Tensor bitwise_right_shift_.Tensor_Scalar bitwise_xor.Scalar bitwise_xor.Scalar_Tensor
bitwise_xor.Tensor bitwise_xor_.Scalar bitwise_xor_.Tensor blackman_window blackman_window.periodic block_diag bmm
broadcast_tensors broadcast_to bucketize.Scalar bucketize.Tensor cartesian_prod cat cdist ceil ceil_ celu celu_
chain_matmul channel_shuffle cholesky cholesky_inverse cholesky_solve chunk clamp clamp.Tensor clamp_ clamp_.Tensor
clamp_max clamp_max.Tensor clamp_max_ clamp_max_.Tensor clamp_min clamp_min.Tensor clamp_min_ clamp_min_.Tensor clip
clip.Tensor clip_ clip_.Tensor clone col2im column_stack combinations complex concat concatenate conj conj_physical
conj_physical_ constant_pad_nd contiguous conv1d conv1d.padding conv2d conv2d.padding conv3d conv3d.padding
conv_transpose1d conv_transpose2d.input conv_transpose3d.input convolution copy copy_ copysign.Scalar copysign.Tensor
copysign_.Scalar copysign_.Tensor corrcoef cos cos_ cosh cosh_ cosine_embedding_loss cosine_similarity count_nonzero
count_nonzero.dim_IntList cov cross cross_entropy_loss cummax cummin cumprod cumprod_ cumsum cumsum_
cumulative_trapezoid.dx cumulative_trapezoid.x deg2rad deg2rad_ det detach detach_ detach_copy diag diag_embed diagflat
diagonal diagonal_copy diagonal_scatter diff digamma digamma_ dim dist div.Scalar div.Scalar_mode div.Tensor
div.Tensor_mode div_.Scalar div_.Scalar_mode div_.Tensor div_.Tensor_mode divide.Scalar divide.Scalar_mode
divide.Tensor divide.Tensor_mode divide_.Scalar divide_.Scalar_mode divide_.Tensor divide_.Tensor_mode dot dropout
dropout_ dstack einsum elu elu_ embedding embedding_bag embedding_bag.padding_idx embedding_renorm_ empty.memory_format
empty_like empty_permuted empty_strided eq.Scalar eq.Tensor eq_.Scalar eq_.Tensor equal erf erf_ erfc erfc_ erfinv
erfinv_ exp exp2 exp2_ exp_ expand expand_as expand_copy expm1 expm1_ exponential_ eye eye.m
fake_quantize_per_channel_affine fake_quantize_per_tensor_affine fake_quantize_per_tensor_affine.tensor_qparams
feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ fft_fft fft_fft2 fft_fftfreq fft_fftn
fft_fftshift fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn fft_ifftshift fft_ihfft fft_ihfft2 fft_ihfftn
fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftfreq fft_rfftn fill.Scalar fill.Tensor fill_.Scalar
fill_.Tensor fill_diagonal_ fix fix_ flatten.using_ints flip fliplr flipud float_power.Scalar float_power.Tensor_Scalar
float_power.Tensor_Tensor float_power_.Scalar float_power_.Tensor floor floor_ floor_divide floor_divide.Scalar
floor_divide_.Scalar floor_divide_.Tensor fmax fmin fmod.Scalar fmod.Tensor fmod_.Scalar fmod_.Tensor frac frac_
frexp.Tensor frobenius_norm.dim full full_like gather gcd gcd_ ge.Scalar ge.Tensor ge_.Scalar ge_.Tensor gelu gelu_ ger
glu greater.Scalar greater.Tensor greater_.Scalar greater_.Tensor greater_equal.Scalar greater_equal.Tensor
greater_equal_.Scalar greater_equal_.Tensor grid_sampler grid_sampler_2d grid_sampler_3d group_norm gru.input gru_cell
gt.Scalar gt.Tensor gt_.Scalar gt_.Tensor hamming_window hamming_window.periodic hamming_window.periodic_alpha
hamming_window.periodic_alpha_beta hann_window hann_window.periodic hardshrink hardsigmoid hardsigmoid_ hardswish
hardswish_ hardtanh hardtanh_ heaviside heaviside_ hinge_embedding_loss histc hstack huber_loss hypot hypot_ i0 i0_
igamma igamma_ igammac igammac_ im2col imag index.Tensor index_add index_add_ index_copy index_copy_
index_fill.int_Scalar index_fill.int_Tensor index_fill_.int_Scalar index_fill_.int_Tensor index_put index_put_
index_reduce index_reduce_ index_select inner instance_norm inverse is_complex is_floating_point is_nonzero isclose
isfinite isin.Scalar_Tensor isin.Tensor_Scalar isin.Tensor_Tensor isinf isnan isneginf isposinf isreal istft item
kaiser_window kaiser_window.beta kaiser_window.periodic kl_div kron kthvalue l1_loss layer_norm lcm lcm_ ldexp.Tensor
ldexp_ le.Scalar le.Tensor le_.Scalar le_.Tensor leaky_relu leaky_relu_ lerp.Scalar lerp.Tensor lerp_.Scalar
lerp_.Tensor less.Scalar less.Tensor less_.Scalar less_.Tensor less_equal.Scalar less_equal.Tensor less_equal_.Scalar
less_equal_.Tensor lgamma lgamma_ lift_fresh lift_fresh_copy linalg_cholesky linalg_cholesky_ex linalg_cond
linalg_cond.p_str linalg_cross linalg_det linalg_diagonal linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh
linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq linalg_lu linalg_lu_factor linalg_lu_factor_ex
linalg_matmul linalg_matrix_exp linalg_matrix_norm linalg_matrix_norm.str_ord linalg_matrix_power linalg_matrix_rank
linalg_matrix_rank.atol_rtol_float linalg_matrix_rank.atol_rtol_tensor linalg_matrix_rank.tol_tensor linalg_multi_dot
linalg_norm linalg_norm.ord_str linalg_pinv linalg_pinv.atol_rtol_float linalg_pinv.atol_rtol_tensor
linalg_pinv.rcond_tensor linalg_qr linalg_slogdet linalg_solve linalg_solve_ex linalg_solve_triangular linalg_svd
linalg_svdvals linalg_tensorinv linalg_tensorsolve linalg_vander linalg_vecdot linalg_vector_norm linear linspace
linspace.Scalar_Tensor linspace.Tensor_Scalar linspace.Tensor_Tensor log log10 log10_ log1p log1p_ log2 log2_ log_
log_sigmoid log_sigmoid_forward log_softmax.int logaddexp logaddexp2 logcumsumexp logdet logical_and logical_and_
logical_not logical_not_ logical_or logical_or_ logical_xor logical_xor_ logit logit_ logspace logspace.Scalar_Tensor
logspace.Tensor_Scalar logspace.Tensor_Tensor logsumexp lstm.input lstm_cell lt.Scalar lt.Tensor lt_.Scalar lt_.Tensor
mH mT margin_ranking_loss masked_fill.Scalar masked_fill.Tensor masked_fill_.Scalar masked_fill_.Tensor masked_scatter
masked_scatter_ masked_select matmul matrix_H matrix_exp matrix_power max max.dim max.other max_pool1d
max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool2d max_unpool3d
maximum mean mean.dim median median.dim meshgrid meshgrid.indexing min min.dim min.other minimum mish mish_ mm mode
moveaxis.int moveaxis.intlist movedim.int movedim.intlist mse_loss msort mul.Scalar mul.Tensor mul_.Scalar mul_.Tensor
multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward multiply.Scalar multiply.Tensor
multiply_.Scalar multiply_.Tensor mv mvlgamma mvlgamma_ nan_to_num nan_to_num_ nanmean nanmedian nanmedian.dim
nanquantile nanquantile.scalar nansum narrow narrow.Tensor narrow_copy native_batch_norm native_dropout
native_group_norm native_layer_norm ne.Scalar ne.Tensor ne_.Scalar ne_.Tensor neg neg_ negative negative_ new_empty
new_empty_strided new_full new_ones new_zeros nextafter nextafter_ nll_loss nll_loss2d nll_loss2d_forward
nll_loss_forward nll_loss_nd nonzero nonzero_static norm.Scalar norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype
norm.ScalarOpt_dtype norm_except_dim normal.float_float normal_ not_equal.Scalar not_equal.Tensor not_equal_.Scalar
not_equal_.Tensor nuclear_norm nuclear_norm.dim numel numpy_T one_hot ones ones_like outer pad pad_sequence
pairwise_distance pdist permute permute_copy pinverse pixel_shuffle pixel_unshuffle poisson_nll_loss polar polygamma
polygamma_ positive pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor pow_.Scalar pow_.Tensor prelu prod prod.dim_int put
put_ qr quantile quantile.scalar rad2deg rad2deg_ rand rand_like randint randint.low randint_like randint_like.Tensor
randint_like.low_dtype randn randn_like random_ random_.from random_.to randperm ravel real reciprocal reciprocal_
reflection_pad1d reflection_pad2d reflection_pad3d relu relu6 relu6_ relu_ remainder.Scalar remainder.Scalar_Tensor
remainder.Tensor remainder_.Scalar remainder_.Tensor renorm renorm_ repeat repeat_interleave.Tensor
repeat_interleave.self_Tensor repeat_interleave.self_int replication_pad1d replication_pad2d replication_pad3d reshape
reshape_as resolve_conj resolve_neg rms_norm rnn_relu.input rnn_relu_cell rnn_tanh.input rnn_tanh_cell roll rot90 round
round.decimals round_ round_.decimals row_stack rsqrt rsqrt_ rsub.Scalar rsub.Tensor scalar_tensor
scaled_dot_product_attention scatter.reduce scatter.src scatter.value scatter.value_reduce scatter_.reduce scatter_.src
scatter_.value scatter_.value_reduce scatter_add scatter_add_ scatter_reduce.two scatter_reduce_.two
searchsorted.Scalar searchsorted.Tensor select.int select_copy.int select_scatter selu selu_ sgn sgn_ sigmoid sigmoid_
sign sign_ signbit silu silu_ sin sin_ sinc sinc_ sinh sinh_ size.int slice.Tensor slice_copy.Tensor slice_scatter
slogdet smooth_l1_loss soft_margin_loss softmax.int softplus softshrink sort sort.stable special_airy_ai
special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_digamma special_entr special_erf
special_erfc special_erfcx special_erfinv special_exp2 special_expit special_expm1 special_gammainc special_gammaincc
special_gammaln special_i0 special_i0e special_i1 special_i1e special_log1p special_log_ndtr special_log_softmax
special_logit special_logsumexp special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0
special_modified_bessel_k1 special_multigammaln special_ndtr special_ndtri special_polygamma special_psi special_round
special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_sinc special_softmax
special_spherical_bessel_j0 special_xlog1py special_xlog1py.other_scalar special_xlog1py.self_scalar special_xlogy
special_xlogy.other_scalar special_xlogy.self_scalar special_zeta special_zeta.other_scalar special_zeta.self_scalar
split.Tensor split.sizes split_copy.Tensor split_with_sizes split_with_sizes_copy sqrt sqrt_ square square_ squeeze
squeeze.dim squeeze.dims squeeze_ squeeze_.dim squeeze_.dims squeeze_copy squeeze_copy.dim squeeze_copy.dims stack std
std.correction std.dim std_mean std_mean.correction std_mean.dim stft stft.center stride.int sub.Scalar sub.Tensor
sub_.Scalar sub_.Tensor subtract.Scalar subtract.Tensor subtract_.Scalar subtract_.Tensor sum sum.dim_IntList
sum_to_size svd swapaxes swapaxes_ swapdims swapdims_ sym_constrain_range sym_constrain_range_for_size
sym_is_contiguous sym_numel sym_size.int sym_storage_offset sym_stride.int t t_ t_copy take take_along_dim tan tan_
tanh tanh_ tensor_split.indices tensor_split.sections tensor_split.tensor_indices_or_sections tensordot threshold
threshold_ tile to.device to.dtype to.dtype_layout to.other topk trace transpose.int transpose_ transpose_copy.int
trapezoid.dx trapezoid.x trapz.dx trapz.x tril tril_ tril_indices triplet_margin_loss triu triu_ triu_indices
true_divide.Scalar true_divide.Tensor true_divide_.Scalar true_divide_.Tensor trunc trunc_ type_as unbind.int
unbind_copy.int unflatten.int unfold unfold_copy uniform_ unique_consecutive unique_dim unique_dim_consecutive
unsafe_chunk unsafe_split.Tensor unsafe_split_with_sizes unsqueeze unsqueeze_ unsqueeze_copy upsample_bicubic2d
upsample_bicubic2d.vec upsample_bilinear2d upsample_bilinear2d.vec upsample_linear1d upsample_linear1d.vec
upsample_nearest1d upsample_nearest1d.vec upsample_nearest2d upsample_nearest2d.vec upsample_nearest3d
upsample_nearest3d.vec upsample_trilinear3d upsample_trilinear3d.vec vander var var.correction var.dim var_mean
var_mean.correction var_mean.dim vdot view view.dtype view_as view_as_complex view_as_complex_copy view_as_real
view_as_real_copy view_copy view_copy.dtype vstack where where.Scalar where.ScalarOther where.ScalarSelf where.self
xlogy.Scalar_Other xlogy.Scalar_Self xlogy.Tensor xlogy_.Scalar_Other xlogy_.Tensor zero_ zeros zeros_like)";

constexpr const char* kNamespace = "aten::";

bool writes_result_into_argument(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.arguments(), [](const c10::Argument& argument) {
    return argument.kwarg_only() && argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  });
}

}  // namespace

const std::vector<std::string_view>& allowed_operators() {
  static const std::vector<std::string_view> all = [] {
    std::vector<std::string_view> names;
    constexpr std::string_view kSpaces = " \n";
    for (size_t at = kOperators.find_first_not_of(kSpaces); at != std::string_view::npos;) {
      const size_t end = kOperators.find_first_of(kSpaces, at);
      names.push_back(kOperators.substr(at, end - at));
      at = kOperators.find_first_not_of(kSpaces, end);
    }
    return names;
  }();
  return all;
}

c10::OperatorHandle allowed_operator(const c10::OperatorName& name) {
  const std::string full = c10::toString(name);
  if (!full.starts_with(kNamespace))
    throw Error("MODEL_OPERATOR_NOT_ALLOWED", "a program may name only operators of PyTorch itself (torch.ops.aten)",
                "export the model without operators of other libraries (torchvision, custom ones)");
  if (const std::string why = why_refused(full); !why.empty())
    throw Error("MODEL_OPERATOR_UNSUPPORTED", why, "export the model without it");
  const auto op = c10::Dispatcher::singleton().findSchema(name);
  const auto& all = allowed_operators();
  if (!std::binary_search(all.begin(), all.end(), std::string_view(full).substr(std::string_view(kNamespace).size()))) {
    const bool out = op && writes_result_into_argument(op->schema());
    throw Error("MODEL_OPERATOR_NOT_ALLOWED",
                out ? "it writes its result into an argument, so a program may not name it"
                    : "it is not on the list of operators that a program may name",
                out ? "export the model with the form that returns its result"
                    : "build the model from other operators; ep.run_decompositions() replaces some, but it also drops "
                      "detach() and no_grad(), and its dropout stays on in evaluation");
  }
  if (!op)
    throw Error("MODEL_OPERATOR_UNSUPPORTED", "this libtorch has no such operator",
                "export the model with the version of torch that Sinew was built with");
  return *op;
}

}  // namespace sinew::model
