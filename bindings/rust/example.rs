// example.rs - S A from Rust, by what bindgen makes of flashsketch_solvers.h:
//
//     bindgen include/flashsketch_solvers.h -o bindings.rs -- -Iinclude
//     rustc example.rs -lflashsketch
#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals, dead_code)]
include!(concat!(env!("BINDINGS"), "/bindings.rs"));

fn check(result: fs_result) {
    if result != 0 {
        let text = unsafe { std::ffi::CStr::from_ptr(fs_error_message()) };
        panic!("{}", text.to_string_lossy());
    }
}

fn main() {
    let (d, n, k) = (10000i64, 20i64, 400i64);
    let mut a: Vec<f64> = (0..d * n).map(|i| (i as f64).sin()).collect();
    let mut y = vec![0f64; (k * n) as usize];
    let mut spec: fs_spec = unsafe { std::mem::zeroed() };
    spec.size = std::mem::size_of::<fs_spec>() as _;
    (spec.d, spec.k, spec.seed) = (d, k, 7);
    let (mut sketch, mut ctx) = (std::ptr::null_mut(), std::ptr::null_mut());
    let mut digest = 0u64;
    unsafe {
        check(fs_sketch_create(&mut sketch, &spec));
        check(fs_context_create(&mut ctx, std::ptr::null()));
        let from = fs_row_major(a.as_mut_ptr() as _, d, n, fs_dtype_FS_F64);
        let to = fs_row_major(y.as_mut_ptr() as _, k, n, fs_dtype_FS_F64);
        check(fs_apply(ctx, sketch, 0, 1.0, &from, 0.0, &to));
        check(fs_sketch_digest(ctx, sketch, 0, d, &mut digest));
        fs_context_destroy(ctx);
        fs_sketch_destroy(sketch);
    }
    let length = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    println!("digest {:016X}", digest);
    println!("length {:.2}", length(&y) / length(&a));
}
